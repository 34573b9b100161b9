"""Parts of a run set against one another: its first and last quarter, its three thirds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from typing import Any, Literal

import numpy as np

from spade_train.report.records import rounded

QUARTER = 0.25
NORMAL = 1.96
# Two-sided 95 % quantiles of Student's t for 1 to 10 degrees of freedom: a quarter of a short run
# has few steps, and their spread says little.
_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)

Direction = Literal["up", "down", "level", "unknown"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its standard error.

    Attributes:
        mean: of the values.
        error: standard error of the mean; None where nothing tells it.
        count: number of values.
        scale: how many standard errors make a 95 % interval.
    """

    mean: float
    error: float | None
    count: int
    scale: float = NORMAL


def estimate(values: Sequence[float], errors: Sequence[float | None] = ()) -> Estimate:
    """Return the mean of some values and its error.

    Args:
        values: at least one.
        errors: a standard error of each value, used where a single value has no spread of its own.
    """
    count = len(values)
    mean = float(np.mean(values))
    if count > 1:
        error = float(np.std(values, ddof=1)) / sqrt(count)
        return Estimate(mean, error, count, _student(count - 1))
    return Estimate(mean, errors[0] if errors else None, count)


def _student(freedom: int) -> float:
    return _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else NORMAL + 3 / freedom


def quarters(
    values: Sequence[Any], errors: Sequence[Any] | None = None
) -> tuple[Estimate, Estimate] | None:
    """Return the first and the last quarter of a series, over the steps that have a value.

    Returns:
        Both, or None where there are fewer than two values.

    >>> first, last = quarters([0.0, 1.0, None, 2.0, 3.0])
    >>> first.mean, last.mean
    (0.0, 3.0)
    """
    places = quarter_places(values)
    if places is None:
        return None
    first, last = (
        estimate(
            [float(values[place]) for place in part],
            [None if errors is None else errors[place] for place in part],
        )
        for part in places
    )
    return first, last


def quarter_places(values: Sequence[Any]) -> tuple[list[int], list[int]] | None:
    """Return where the first and the last quarter of the values that are there stand."""
    there = [place for place, value in enumerate(values) if value is not None]
    if len(there) < 2:
        return None
    width = max(1, int(len(there) * QUARTER))
    return there[:width], there[-width:]


def interval(first: Estimate, last: Estimate) -> tuple[float, float] | None:
    """Return the 95 % interval of a change, None where an error is not known."""
    if first.error is None or last.error is None:
        return None
    spread = max(first.scale, last.scale) * hypot(first.error, last.error)
    change = last.mean - first.mean
    return change - spread, change + spread


def direction(first: Estimate, last: Estimate) -> Direction:
    """Say which way a figure went, as far as its errors let one say.

    >>> direction(Estimate(0.2, 0.02, 9), Estimate(0.5, 0.02, 9))
    'up'
    >>> direction(Estimate(0.2, 0.2, 9), Estimate(0.5, 0.2, 9))
    'level'
    """
    edges = interval(first, last)
    if edges is None:
        return "unknown"
    if edges[0] > 0:
        return "up"
    return "down" if edges[1] < 0 else "level"


def third_of(step: int, steps: Sequence[int]) -> int:
    """Return in which third of a run's steps (0, 1 or 2) a step lies.

    >>> [third_of(step, range(60)) for step in (0, 19, 20, 40, 59)]
    [0, 0, 1, 2, 2]
    """
    before = sum(other < step for other in steps)
    return min(2, 3 * before // max(1, len(steps)))


def spans(
    steps: Sequence[int], values: Sequence[Any], parts: Sequence[Sequence[int]]
) -> list[list[Any]]:
    """Return what a chart draws of parts of a run: `[from step, to step, mean]` of each."""
    return [
        [steps[part[0]], steps[part[-1]], rounded(estimate([values[i] for i in part]).mean)]
        for part in parts
        if len(part) > 1
    ]
