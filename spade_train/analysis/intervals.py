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
