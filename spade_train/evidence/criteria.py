"""What the demonstration sets out to show, checked seed by seed: value, target, met or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spade_train.analysis.intervals import bootstrap_interval, t_interval, wilson_interval
from spade_train.evidence import figures
from spade_train.evidence.equal_cost import gain
from spade_train.evidence.figures import Estimate
from spade_train.evidence.gather import Made, RunFacts

RISE = 0.25
BAND_START, BAND_END = 0.3, 0.5
ACCEPTANCE = 0.85


@dataclass(frozen=True, slots=True)
class Check:
    """One criterion of one run.

    Attributes:
        name: what is looked at.
        target: what it should be.
        value: what was seen, in words.
        met: whether it is met; None where the run can't tell.
        aim: whether it is an aim beyond, and no condition.
    """

    name: str
    target: str
    value: str
    met: bool | None
    aim: bool = False


def check(
    run: RunFacts, frozen: RunFacts | None = None, budget: float | None = None
) -> list[Check]:
    """Check one run of the full arm.

    Args:
        run: the run.
        frozen: the run of the same seed whose designer is frozen, where there is one.
        budget: FLOPs at which the two are compared.
    """
    first, last = figures.start_and_end(run)
    easier, harder = figures.difficulty_changes(run)
    return [
        _rise(run),
        _band("band share of new designs, first tenth", first, f"below {BAND_START}", False),
        _band("band share of new designs, last tenth", last, f"above {BAND_END}", True),
        _acceptance(run),
        _regret(run),
        _moved("levers: end harder than middle", harder, "harder, interval above 0", 1),
        _moved(
            "levers: middle easier than start", easier, "easier, interval below 0", -1, aim=True
        ),
        _frozen(run, frozen, budget),
    ]


def signed(value: float, interval: tuple[float, float] | None) -> str:
    """Return a change with its interval, as the tables print it.

    >>> signed(0.25, (0.125, 0.5)), signed(-0.5, None)
    ('+0.25 (+0.12 to +0.50)', '-0.50')
    """
    if interval is None:
        return _signed(value)
    return f"{_signed(value)} ({_signed(interval[0])} to {_signed(interval[1])})"


def _signed(value: float) -> str:
    text = f"{value:+.2f}"
    return "0.00" if text in ("-0.00", "+0.00") else text


def _rise(run: RunFacts) -> Check:
    name, target = "held-out win rate without hint", f"up by {RISE} or more, interval above 0"
    changes = figures.heldout_change(run)
    interval = t_interval(changes)
    if interval is None:
        return Check(name, target, "not measured", None)
    rise = sum(changes) / len(changes)
    return Check(name, target, signed(rise, interval), rise >= RISE and interval[0] > 0)


def _band(name: str, designs: Sequence[Made], target: str, above: bool) -> Check:
    share = figures.band_share(designs)
    if share is None:
        return Check(name, target, "nothing played", None)
    played = sum(design.win_rate is not None for design in designs)
    low, high = wilson_interval(round(share * played), played)
    met = share > BAND_END if above else share < BAND_START
    return Check(name, target, f"{share:.2f} ({low:.2f} to {high:.2f}) of {played}", met)


def _acceptance(run: RunFacts) -> Check:
    name, target = "acceptance throughout", f"{ACCEPTANCE} or more in every tenth"
    lowest, whole = figures.lowest_acceptance(run), figures.acceptance(run)
    if lowest is None or whole is None:
        return Check(name, target, "no designs", None)
    return Check(name, target, f"lowest {lowest:.2f}, whole {whole:.2f}", lowest >= ACCEPTANCE)


def _regret(run: RunFacts) -> Check:
    name, target = "hint regret on mastered families", "falls, interval below 0"
    mastered = [family for family in figures.family_figures(run) if family.mastered]
    change = figures.regret_change(mastered)
    if not mastered:
        return Check(name, target, "no family mastered", False)
    if change is None:
        return Check(name, target, "not known in both quarters", None)
    error = "" if change.error is None else f" ± {change.error:.2f} (SE)"
    interval = change.interval()
    met = None if interval is None else interval[1] < 0
    return Check(name, target, f"{change.value:+.2f}{error} in {change.n} families", met)


def _moved(
    name: str, change: Estimate | None, target: str, sign: int, *, aim: bool = False
) -> Check:
    interval = change.interval() if change is not None else None
    if change is None or interval is None:
        return Check(name, target, "too few designs with levers", None, aim)
    met = interval[0] > 0 if sign > 0 else interval[1] < 0
    return Check(name, target, f"{signed(change.value, interval)} SD", met, aim)


def _frozen(run: RunFacts, frozen: RunFacts | None, budget: float | None) -> Check:
    name = "better than a frozen designer at equal FLOPs"
    target = "gain with interval above 0"
    if frozen is None or budget is None or not run.heldout or not frozen.heldout:
        return Check(name, target, "not run", None, True)
    gains = list(gain(run, frozen, "flops", budget).values())
    interval = bootstrap_interval(gains)
    if interval is None:
        return Check(name, target, "not measured", None, True)
    return Check(name, target, signed(sum(gains) / len(gains), interval), interval[0] > 0, True)
