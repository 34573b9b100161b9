"""Figures of one run: held-out win rates, quarters, regret by family, levers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, sqrt

from spade_train.analysis.band import learnable_band_share
from spade_train.evidence.gather import QUARTERS, HeldoutPoint, Made, RunFacts, mean, rates
from spade_train.evidence.levers import LEVERS, difficulty
from spade_train.population import mean_and_error

# A family is mastered where the agent wins more than this share of its plays in the last quarter.
MASTERED = 0.5
# The start and the end of a run, and the windows in which acceptance is judged.
TENTH = 10
NORMAL = 1.96

Groups = Mapping[str, tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its standard error, None where it can't be said, over n items."""

    value: float
    error: float | None
    n: int

    def interval(self) -> tuple[float, float] | None:
        """Return the normal 95 % interval."""
        if self.error is None:
            return None
        return (self.value - NORMAL * self.error, self.value + NORMAL * self.error)


def estimate(values: Sequence[float]) -> Estimate | None:
    """Return the mean and its standard error, None of nothing."""
    value, error = mean_and_error(values)
    return None if value is None else Estimate(value, error, len(values))


def difference(later: Estimate | None, earlier: Estimate | None) -> Estimate | None:
    """Return later - earlier of two independent means."""
    if later is None or earlier is None:
        return None
    known = later.error is not None and earlier.error is not None
    error = hypot(later.error or 0.0, earlier.error or 0.0) if known else None
    return Estimate(later.value - earlier.value, error, min(later.n, earlier.n))


# -- held-out environments -----------------------------------------------------------------------


def heldout_rate(
    point: HeldoutPoint, families: Groups, group: str = "all", arm: str = "unhinted"
) -> float | None:
    """Return the mean win rate over the environments of a group.

    Args:
        point: a measurement.
        families: environment -> (family, whether it is new).
        group: `all`, `known`, `new`, or a family's name.
        arm: `unhinted` or `hinted`.
    """
    return mean([r for name, r in rates(point, arm).items() if _in(name, families, group)])


def _in(name: str, families: Groups, group: str) -> bool:
    family, new = families.get(name, ("", False))
    return group == "all" or group == ("new" if new else "known") or group == family


def heldout_change(run: RunFacts, group: str = "all") -> list[float]:
    """Return for each environment its unhinted win rate at the end minus that before training."""
    if len(run.heldout) < 2:
        return []
    before, after = run.heldout[0].unhinted, run.heldout[-1].unhinted
    return [
        after[name] - before[name]
        for name in before
        if name in after and _in(name, run.families, group)
    ]


def middle(run: RunFacts) -> HeldoutPoint | None:
    """Return the measurement nearest to the middle of the run."""
    return min(run.heldout, key=lambda p: abs(2 * p.step - run.steps), default=None)


# -- quarters ------------------------------------------------------------------------------------


def pool_win_rate(designs: Sequence[Made]) -> float | None:
    """Return the share of unhinted plays that were won."""
    plays = sum(design.plays for design in designs)
    return sum(design.wins for design in designs) / plays if plays else None


def hinted_win_rate(designs: Sequence[Made]) -> float | None:
    """Return the share of hinted plays that were won."""
    plays = sum(design.hinted_plays for design in designs)
    return sum(design.hinted_wins for design in designs) / plays if plays else None


def regret(designs: Sequence[Made]) -> Estimate | None:
    """Return the mean hint regret over designs, with its standard error."""
    return estimate([d.regret for d in designs if d.regret is not None])


def mean_regret(designs: Sequence[Made]) -> float | None:
    """Return the mean hint regret over designs."""
    found = regret(designs)
    return found.value if found else None


def band_share(designs: Sequence[Made]) -> float | None:
    """Return the share of the played designs that lie in the learnable band."""
    return learnable_band_share([d.win_rate for d in designs if d.win_rate is not None])


def lever(name: str) -> Callable[[Sequence[Made]], float | None]:
    """Return what takes the mean of a lever over designs."""
    return lambda designs: mean([d.levers[name] for d in designs if name in d.levers])


POOL_FIGURES: Mapping[str, Callable[[Sequence[Made]], float | None]] = {
    "win rate": pool_win_rate,
    "win rate with hint": hinted_win_rate,
    "hint regret": mean_regret,
    "in the learnable band": band_share,
    **{name: lever(name) for name in LEVERS},
}


def by_quarter(
    run: RunFacts, figure: Callable[[Sequence[Made]], float | None]
) -> list[float | None]:
    """Return a figure of the designs made in each quarter."""
    return [figure(run.of_quarter(quarter)) for quarter in range(QUARTERS)]


def acceptance_by_quarter(run: RunFacts) -> list[float | None]:
    """Return the share of accepted tries in each quarter."""
    return [
        _share([tried for step, tried in run.tries.items() if run.quarter(step) == quarter])
        for quarter in range(QUARTERS)
    ]


def acceptance(run: RunFacts) -> float | None:
    """Return the share of accepted tries of the whole run."""
    return _share(list(run.tries.values()))


def lowest_acceptance(run: RunFacts) -> float | None:
    """Return the lowest share of accepted tries in any tenth of the run, wherever it begins."""
    width = max(1, run.steps // TENTH)
    last = max(0, run.steps - width)
    shares = [
        _share([tried for step, tried in run.tries.items() if start <= step < start + width])
        for start in range(last + 1)
    ]
    return min((share for share in shares if share is not None), default=None)


def _share(tries: Sequence[tuple[int, int]]) -> float | None:
    total = sum(count for count, _ in tries)
    return sum(accepted for _, accepted in tries) / total if total else None


def start_and_end(run: RunFacts) -> tuple[list[Made], list[Made]]:
    """Return the designs of the first and of the last tenth of the run."""
    width = max(1, run.steps // TENTH)
    first = [design for design in run.made if design.step < width]
    return first, [design for design in run.made if design.step >= run.steps - width]


# -- families ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FamilyFigures:
    """One family of designs over a run.

    Attributes:
        name: of the family.
        designs: how many were accepted.
        win_rates: unhinted, by quarter.
        regrets: by quarter.
    """

    name: str
    designs: int
    win_rates: tuple[float | None, ...]
    regrets: tuple[Estimate | None, ...]

    @property
    def mastered(self) -> bool:
        """Whether the agent wins most of its plays in the last quarter."""
        last = self.win_rates[-1]
        return last is not None and last > MASTERED


def family_figures(run: RunFacts) -> list[FamilyFigures]:
    """Return the families of a run's designs, the most frequent first."""
    found = []
    for name in {design.family for design in run.made}:
        own = [[d for d in run.of_quarter(q) if d.family == name] for q in range(QUARTERS)]
        found.append(
            FamilyFigures(
                name,
                sum(map(len, own)),
                tuple(pool_win_rate(designs) for designs in own),
                tuple(regret(designs) for designs in own),
            )
        )
    return sorted(found, key=lambda family: (-family.designs, family.name))


def regret_change(families: Sequence[FamilyFigures]) -> Estimate | None:
    """Return the change of hint regret from the first to the last quarter, family by family.

    The mean over the families of each one's change, so that a shift among families is no change.
    """
    changes = [difference(f.regrets[-1], f.regrets[0]) for f in families]
    known = [change for change in changes if change is not None]
    if not known:
        return None
    errors = [change.error for change in known]
    error = None
    if all(one is not None for one in errors):
        error = sqrt(sum((one or 0.0) ** 2 for one in errors)) / len(known)
    return Estimate(sum(c.value for c in known) / len(known), error, len(known))


# -- levers --------------------------------------------------------------------------------------


def difficulty_by_quarter(run: RunFacts) -> list[Estimate | None]:
    """Return the designs' difficulty by their levers in each quarter (see `levers.difficulty`)."""
    numbers = difficulty([(design.family, design.levers) for design in run.made])
    return [
        estimate(
            [
                number
                for design, number in zip(run.made, numbers, strict=True)
                if number is not None and run.quarter(design.step) == quarter
            ]
        )
        for quarter in range(QUARTERS)
    ]


def difficulty_changes(run: RunFacts) -> tuple[Estimate | None, Estimate | None]:
    """Return how much harder the middle is than the start, and the end than the middle.

    The start is the first quarter, the middle the second and third, the end the last.
    """
    numbers = difficulty([(design.family, design.levers) for design in run.made])
    parts: tuple[list[float], list[float], list[float]] = ([], [], [])
    for design, number in zip(run.made, numbers, strict=True):
        if number is not None:
            parts[(0, 1, 1, 2)[run.quarter(design.step)]].append(number)
    start, inner, end = (estimate(part) for part in parts)
    return difference(inner, start), difference(end, inner)
