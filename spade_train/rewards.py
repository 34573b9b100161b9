"""What a play, a hint and a design are worth (the paper's reward, section by section).

Pure functions on numbers and numpy arrays. A play that a fault of the environment voided has no
return at all: it appears as None, is never averaged as 0, and is counted by whoever calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

ReturnMode = Literal["terminal", "sum", "best"]
Pairing = Literal["paired", "independent"]
Floats = NDArray[np.float64]


def episode_return(
    rewards: Sequence[float],
    terminated: bool,
    *,
    mode: ReturnMode = "terminal",
    credit: float | None = None,
) -> float:
    """Return what an episode is worth, in [-1, 1].

    Args:
        rewards: the reward of each turn, in order.
        terminated: whether the environment ended the episode by itself.
        mode: `terminal` is the paper's: the last reward if the episode terminated, else 0. `sum`
            adds the rewards up, or takes the credit where that is more (a tool environment pays
            at its end alone). `best` is the highest of the rewards and the credit.
        credit: share of user turns completed, for tool-use environments.

    >>> episode_return([0.2, 0.7], True)
    0.7
    >>> episode_return([0.2, 0.7], False)
    0.0
    """
    if mode == "terminal":
        value = rewards[-1] if terminated and rewards else 0.0
    elif mode == "sum":
        value = sum(rewards) if credit is None else max(sum(rewards), credit)
    elif mode == "best":
        value = max([*rewards, *([] if credit is None else [credit])], default=0.0)
    else:
        raise ValueError(f"unknown return mode {mode!r}; use 'terminal', 'sum' or 'best'")
    return float(min(1.0, max(-1.0, value)))


class SeedReturn(NamedTuple):
    """One play's return and the seed it was reset with; `value` is None where it is void."""

    seed: int
    value: float | None


@dataclass(frozen=True, slots=True)
class Regret:
    """Hint regret of one environment.

    Attributes:
        value: mean return with the hint minus mean return without; None where it is missing.
        standard_error: of the value; None below two seeds.
        seeds: seeds (in `independent` pairing: the smaller arm's) that count.
        void: seeds that a fault took out.
    """

    value: float | None
    standard_error: float | None
    seeds: int
    void: int


def _by_seed(plays: Sequence[SeedReturn]) -> dict[int, float | None]:
    """Return each seed's mean over its plays that count, None where none does."""
    values: dict[int, list[float]] = {}
    for play in plays:
        kept = values.setdefault(play.seed, [])
        if play.value is not None:
            kept.append(play.value)
    return {seed: float(np.mean(kept)) if kept else None for seed, kept in values.items()}


def _standard_error(values: Floats) -> float | None:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def hint_regret(
    hinted: Sequence[SeedReturn],
    unhinted: Sequence[SeedReturn],
    *,
    pairing: Pairing = "paired",
) -> Regret:
    """Return what the hint adds: the paper's estimate of regret.

    In `paired` mode each seed gives one difference, so what makes a seed easy or hard cancels, and
    the standard error is that of the differences. A seed is void in both arms or in neither. Fewer
    than half of the planned pairs (in `independent` mode: of either arm's seeds) left makes the
    regret missing, since what remains would be a selection.

    >>> pairs = [SeedReturn(1, 1.0), SeedReturn(2, 1.0)], [SeedReturn(1, 0.0), SeedReturn(2, 1.0)]
    >>> hint_regret(*pairs)
    Regret(value=0.5, standard_error=0.5, seeds=2, void=0)
    """
    if pairing == "paired":
        return _paired(_by_seed(hinted), _by_seed(unhinted))
    if pairing == "independent":
        return _independent(_by_seed(hinted), _by_seed(unhinted))
    raise ValueError(f"unknown seed pairing {pairing!r}; use 'paired' or 'independent'")


def _paired(hinted: dict[int, float | None], unhinted: dict[int, float | None]) -> Regret:
    planned = [seed for seed in unhinted if seed in hinted]
    differences = []
    for seed in planned:
        with_hint, without = hinted[seed], unhinted[seed]
        if with_hint is not None and without is not None:
            differences.append(with_hint - without)
    void = len(planned) - len(differences)
    if not differences or 2 * len(differences) < len(planned):
        return Regret(None, None, len(differences), void)
    values = np.asarray(differences, dtype=np.float64)
    return Regret(float(values.mean()), _standard_error(values), len(differences), void)


def _independent(hinted: dict[int, float | None], unhinted: dict[int, float | None]) -> Regret:
    arms = [
        np.asarray([value for value in arm.values() if value is not None], dtype=np.float64)
        for arm in (hinted, unhinted)
    ]
    void = len(hinted) + len(unhinted) - sum(len(arm) for arm in arms)
    seeds = min(len(arm) for arm in arms)
    for arm, planned in zip(arms, (hinted, unhinted), strict=True):
        if not len(arm) or 2 * len(arm) < len(planned):
            return Regret(None, None, seeds, void)
    first, second = (_standard_error(arm) for arm in arms)
    error = None if first is None or second is None else float(np.hypot(first, second))
    return Regret(float(arms[0].mean() - arms[1].mean()), error, seeds, void)


def win_rate(solved: Sequence[bool | None]) -> float | None:
    """Return the share of plays that solved the task; None marks a void play, which doesn't count.

    >>> win_rate([True, False, None])
    0.5
    """
    counted = [won for won in solved if won is not None]
    return sum(counted) / len(counted) if counted else None


def difficulty_anchor(win_rate: ArrayLike, *, low: float, high: float, ramp: float) -> Any:
    """Return 1 inside [low, high], falling linearly to 0 over `ramp` on either side.

    Args:
        win_rate: a number or an array of them, in [0, 1].
        low: lower edge of the band.
        high: upper edge of the band.
        ramp: width over which the value falls to 0, above 0.

    >>> difficulty_anchor(0.3, low=0.4, high=0.6, ramp=0.25)
    0.6
    """
    rates = np.asarray(win_rate, dtype=np.float64)
    outside = np.maximum(np.maximum(low - rates, rates - high), 0.0)
    anchor = np.clip(1.0 - outside / ramp, 0.0, 1.0)
    # A rate that sits on the ramp's end must give 0, not the rounding error of the division.
    return _like(np.round(anchor, 12), win_rate)


def blended_designer_reward(
    regret: ArrayLike,
    win_rate: ArrayLike,
    *,
    regret_weight: float,
    anchor_weight: float,
    regret_saturation: float,
    low: float,
    high: float,
    ramp: float,
) -> Any:
    """Return the designer's raw reward: saturated regret blended with the difficulty anchor.

    `regret_saturation` divides the regret before it is clipped to [0, 1]: 0.15 is what the
    reference code does, 1.0 gives the paper's text.
    """
    saturated = np.clip(np.asarray(regret, dtype=np.float64) / regret_saturation, 0.0, 1.0)
    anchor = difficulty_anchor(win_rate, low=low, high=high, ramp=ramp)
    return _like(regret_weight * saturated + anchor_weight * np.asarray(anchor), regret)


def centre_by_skill(raw: ArrayLike, skills: Sequence[str]) -> Floats:
    """Return raw rewards minus the mean of their skill's designs; no division by the deviation.

    >>> centre_by_skill([1.0, 0.0, 0.5], ["a", "a", "b"]).tolist()
    [0.5, -0.5, 0.0]
    """
    values = np.asarray(raw, dtype=np.float64)
    if len(values) != len(skills):
        raise ValueError(f"{len(values)} rewards for {len(skills)} skills")
    names = np.asarray(skills)
    centred = np.empty_like(values)
    for skill in set(skills):
        rows = names == skill
        centred[rows] = values[rows] - values[rows].mean()
    return centred


class MovingAverage:
    """Exponential moving average; `gamma` is the weight of the new value, the first initialises.

    >>> average = MovingAverage(0.98)
    >>> [round(average.update(value), 5) for value in (0.2, 0.5, 0.4)]
    [0.2, 0.494, 0.40188]
    """

    def __init__(self, gamma: float, value: float | None = None) -> None:
        if not 0.0 < gamma <= 1.0:
            raise ValueError(f"gamma must lie in (0, 1], got {gamma}")
        self.gamma = gamma
        self.value = value

    def update(self, value: float) -> float:
        """Take a value in and return the new average."""
        old = self.value
        self.value = float(value if old is None else self.gamma * value + (1 - self.gamma) * old)
        return self.value


def _like(result: Floats, model: ArrayLike) -> Any:
    """Return a float where a number came in, an array where an array did."""
    return float(result) if np.ndim(model) == 0 and np.ndim(result) == 0 else result
