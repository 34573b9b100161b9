"""Sums up episodes: shares and means with 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from spade_envs.episodes import Episode

_Z = 1.959963984540054  # the 97.5 % point of the normal distribution


class Interval(NamedTuple):
    """An estimate and the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    def text(self, *, percent: bool = False) -> str:
        """As tables show it.

        >>> Interval(0.5, 0.25, 0.75).text(percent=True)
        '50.0 % [25.0, 75.0]'
        """
        scale, unit, digits = (100, " %", 1) if percent else (1, "", 3)
        ends = f"[{self.low * scale:.{digits}f}, {self.high * scale:.{digits}f}]"
        return f"{self.value * scale:.{digits}f}{unit} {ends}"


def wilson(successes: int, count: int) -> Interval:
    """Share of successes with its Wilson interval, sound also at 0 and 1.

    >>> [round(x, 3) for x in wilson(8, 10)]
    [0.8, 0.49, 0.943]
    >>> wilson(0, 3).low, wilson(3, 3).high
    (0.0, 1.0)
    """
    if count < 1:
        raise ValueError("no episodes to take a share of")
    share, square = successes / count, _Z * _Z / count
    middle = (share + square / 2) / (1 + square)
    spread = _Z * math.sqrt(share * (1 - share) / count + square / (4 * count)) / (1 + square)
    # Rounding must not move an end past the share itself.
    low, high = max(0.0, middle - spread), min(1.0, middle + spread)
    return Interval(share, min(share, low), max(share, high))


def mean(values: Sequence[float]) -> Interval:
    """Mean with an interval of 1.96 standard errors; of one value, the value itself."""
    if not values:
        raise ValueError("no values to take a mean of")
    middle = math.fsum(values) / len(values)
    if len(values) == 1:
        return Interval(middle, middle, middle)
    variance = math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)
    spread = _Z * math.sqrt(variance / len(values))
    return Interval(middle, middle - spread, middle + spread)


class Summary(NamedTuple):
    """What a run of one agent in one environment came to.

    Attributes:
        episodes: all that were played.
        faults: those that the environment's own fault made void; they count nowhere else.
        solved: share of the others that were solved; None where none is left.
        reward: mean of the rewards' sums.
        turns: mean number of messages.
        truncated: how many a limit ended.
    """

    episodes: int
    faults: int
    solved: Interval | None
    reward: Interval | None
    turns: Interval | None
    truncated: int


def summarise(episodes: Sequence[Episode]) -> Summary:
    """Sum up the episodes of one environment."""
    valid = [one for one in episodes if one.fault is None]
    faults = len(episodes) - len(valid)
    if not valid:
        return Summary(len(episodes), faults, None, None, None, 0)
    return Summary(
        episodes=len(episodes),
        faults=faults,
        solved=wilson(sum(one.solved for one in valid), len(valid)),
        reward=mean([one.total for one in valid]),
        turns=mean([float(one.turns) for one in valid]),
        truncated=sum(one.truncated for one in valid),
    )
