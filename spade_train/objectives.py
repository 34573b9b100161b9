"""What a designer is paid for, behind one interface, so that an ablation changes one thing.

An objective sees the windows that closed in a step together, since some of them compare an
environment with its skill's others. It answers with a raw reward for each, or None where the
environment can't be judged (its regret is missing, or no play counts): such a design is treated as
an invalid one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from spade_train.rewards import MovingAverage, blended_designer_reward, difficulty_anchor

ObjectiveName = Literal["blend", "regret", "anchor", "learning_potential"]
SLOW_GAMMA = 0.85


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a closed window says about one environment.

    Attributes:
        skill: the skill it was designed for.
        regret: hint regret of the pool's first step, None where it is missing.
        win_rate: share of the window's unhinted plays that solved it, None where none counts.
        returns: returns of the window's unhinted plays that count.
    """

    skill: str
    regret: float | None
    win_rate: float | None
    returns: tuple[float, ...] = ()


class Objective(Protocol):
    """One way to pay a designer."""

    name: str

    def score(self, outcomes: Sequence[Outcome]) -> list[float | None]:
        """Return the raw reward of each outcome, before it is centred by skill."""
        ...

    def to_state(self) -> dict[str, Any]:
        """Return what the next call depends on, as plain JSON values."""
        ...

    def from_state(self, state: dict[str, Any]) -> None:
        """Take back what `to_state` gave."""
        ...


class _Stateless:
    def to_state(self) -> dict[str, Any]:
        """Nothing is remembered."""
        return {}

    def from_state(self, state: dict[str, Any]) -> None:
        """Nothing is remembered."""


@dataclass(slots=True)
class Blend(_Stateless):
    """The paper's: 0.4 x saturated regret + 0.6 x difficulty anchor."""

    low: float = 0.4
    high: float = 0.6
    ramp: float = 0.25
    regret_weight: float = 0.4
    anchor_weight: float = 0.6
    regret_saturation: float = 0.15
    name: str = "blend"

    def score(self, outcomes: Sequence[Outcome]) -> list[float | None]:
        """Return the blended reward of each outcome."""
        return [
            None
            if outcome.regret is None or outcome.win_rate is None
            else float(
                blended_designer_reward(
                    outcome.regret,
                    outcome.win_rate,
                    regret_weight=self.regret_weight,
                    anchor_weight=self.anchor_weight,
                    regret_saturation=self.regret_saturation,
                    low=self.low,
                    high=self.high,
                    ramp=self.ramp,
                )
            )
            for outcome in outcomes
        ]


@dataclass(slots=True)
class HintRegret(_Stateless):
    """The hint regret alone, neither clipped nor saturated."""

    name: str = "regret"

    def score(self, outcomes: Sequence[Outcome]) -> list[float | None]:
        """Return the regret of each outcome."""
        return [outcome.regret for outcome in outcomes]


@dataclass(slots=True)
class Anchor(_Stateless):
    """The difficulty anchor alone: the solve-rate ablation."""

    low: float = 0.4
    high: float = 0.6
    ramp: float = 0.25
    name: str = "anchor"

    def score(self, outcomes: Sequence[Outcome]) -> list[float | None]:
        """Return the anchor of each outcome's win rate."""
        return [
            None
            if outcome.win_rate is None
            else float(
                difficulty_anchor(outcome.win_rate, low=self.low, high=self.high, ramp=self.ramp)
            )
            for outcome in outcomes
        ]


class LearningPotential:
    """Distance of an environment's mean return from its skill's slow moving average.

    The average takes in the mean over all plays of the skill's windows first, then each
    environment is measured against it.
    """

    name = "learning_potential"

    def __init__(self, slow_gamma: float = SLOW_GAMMA) -> None:
        self.slow_gamma = slow_gamma
        self.averages: dict[str, MovingAverage] = {}

    def score(self, outcomes: Sequence[Outcome]) -> list[float | None]:
        """Return the distance of each outcome, after its skill's average moved."""
        plays: dict[str, list[float]] = {}
        for outcome in outcomes:
            plays.setdefault(outcome.skill, []).extend(outcome.returns)
        for skill, returns in plays.items():
            if returns:
                average = self.averages.setdefault(skill, MovingAverage(self.slow_gamma))
                average.update(sum(returns) / len(returns))
        return [self._distance(outcome) for outcome in outcomes]

    def _distance(self, outcome: Outcome) -> float | None:
        if not outcome.returns:
            return None
        slow = self.averages[outcome.skill].value or 0.0
        return abs(sum(outcome.returns) / len(outcome.returns) - slow)

    def to_state(self) -> dict[str, Any]:
        """Return each skill's slow average."""
        return {skill: average.value for skill, average in self.averages.items()}

    def from_state(self, state: dict[str, Any]) -> None:
        """Take the averages back."""
        self.averages = {
            skill: MovingAverage(self.slow_gamma, value) for skill, value in state.items()
        }


def make_objective(
    name: ObjectiveName,
    *,
    low: float = 0.4,
    high: float = 0.6,
    ramp: float = 0.25,
    regret_weight: float = 0.4,
    anchor_weight: float = 0.6,
    regret_saturation: float = 0.15,
) -> Objective:
    """Return the objective of that name; the numbers are those of the run's configuration.

    Raises:
        ValueError: the name is not known.
    """
    if name == "blend":
        return Blend(low, high, ramp, regret_weight, anchor_weight, regret_saturation)
    if name == "regret":
        return HintRegret()
    if name == "anchor":
        return Anchor(low, high, ramp)
    if name == "learning_potential":
        return LearningPotential()
    raise ValueError(f"unknown objective {name!r}; use blend, regret, anchor, learning_potential")
