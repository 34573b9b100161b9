"""Intervals: no figure of a report stands without one."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from spade_train.seeds import derive


def wilson_interval(wins: int, plays: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the Wilson interval of a share (95 % by default).

    >>> [round(edge, 3) for edge in wilson_interval(8, 16)]
    [0.28, 0.72]
    """
    if plays <= 0:
        return (0.0, 1.0)
    share = wins / plays
    spread = z * sqrt(share * (1 - share) / plays + z * z / (4 * plays * plays))
    centre = share + z * z / (2 * plays)
    scale = 1 + z * z / plays
    return (max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale))


def t_quantile(degrees: int, level: float = 0.95) -> float:
    """Return the two-sided quantile of Student's t: |T| stays below it with probability `level`.

    With t = sqrt(df) tan(angle) the density becomes cos(angle)^(df - 1) on a bounded range, which
    a plain sum integrates.

    >>> round(t_quantile(2), 3)
    4.303
    """
    if degrees < 1 or not 0 < level < 1:
        raise ValueError(f"no t quantile for {degrees} degrees of freedom at level {level}")
    angles = np.linspace(0.0, np.pi / 2, 20001)
    density = np.cos(angles) ** (degrees - 1)
    mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return float(sqrt(degrees) * np.tan(np.interp(level * mass[-1], mass, angles)))


def t_interval(values: Sequence[float], *, level: float = 0.95) -> tuple[float, float] | None:
    """Return Student's interval of the mean of a few independent values; None below two.

    >>> [round(edge, 2) for edge in t_interval([1.0, 2.0, 3.0])]
    [-0.48, 4.48]
    """
    data = np.asarray(values, dtype=np.float64)
    if data.size < 2:
        return None
    half = t_quantile(data.size - 1, level) * float(data.std(ddof=1)) / sqrt(data.size)
    return (float(data.mean()) - half, float(data.mean()) + half)


def bootstrap_interval(
    values: Sequence[float], *, level: float = 0.95, draws: int = 2000, seed: int = 0
) -> tuple[float, float] | None:
    """Return the percentile bootstrap interval of the mean; None below two values."""
    data = np.asarray(values, dtype=np.float64)
    if data.size < 2:
        return None
    stream = np.random.default_rng(derive("bootstrap", seed))
    rows = stream.integers(0, data.size, (draws, data.size))
    means = data[rows].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return (float(low), float(high))
