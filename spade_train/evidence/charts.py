"""Which curves the evidence draws: means over seeds with their 95 % bands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from spade_train.analysis.intervals import t_interval
from spade_train.evidence import figures
from spade_train.evidence.arms import FULL
from spade_train.evidence.collect import Evidence
from spade_train.evidence.gather import Made, RunFacts, costs
from spade_train.evidence.levers import LEVERS
from spade_train.evidence.svg import Panel, Point, Series, figure

PARTS = 10
Curve = Mapping[float, float]


def charts(evidence: Evidence) -> dict[str, str]:
    """Return the figures: file name -> SVG."""
    found = {}
    if any(run.heldout for run in evidence.full):
        found["heldout.svg"] = _heldout(evidence.full)
        if len(evidence.runs) > 1:
            found["arms.svg"] = _arms(evidence)
    if any(run.made for run in evidence.full):
        found["pools.svg"] = _pools(evidence.full)
        found["levers.svg"] = _levers(evidence.full)
    return found


def _heldout(runs: Sequence[RunFacts]) -> str:
    groups = {"all": "all held-out environments"}
    if any(new for run in runs for _, new in run.families.values()):
        groups |= {"known": "known families", "new": "new families"}
    panels = []
    for group, title in groups.items():
        series = []
        for arm, label, colour in (
            ("hinted", "with hint", "hint"),
            ("unhinted", "without hint", "held"),
        ):
            curves = [_heldout_curve(run, group, arm) for run in runs]
            series += _with_seeds(label, colour, curves)
        panels.append(Panel(title, series))
    return figure("Held-out win rate, full arm", panels, columns=3)


def _heldout_curve(run: RunFacts, group: str, arm: str) -> Curve:
    shares = {float(p.step): figures.heldout_rate(p, run.families, group, arm) for p in run.heldout}
    return {step: share for step, share in shares.items() if share is not None}


def _arms(evidence: Evidence) -> str:
    spent = evidence.budgets.get("flops", 0.0)
    full = [_cost_curve(run, spent) for run in evidence.full if len(run.heldout) > 1]
    panels = []
    for arm, runs in evidence.runs.items():
        if arm == FULL:
            continue
        other = [_cost_curve(run, spent) for run in runs if len(run.heldout) > 1]
        series = [
            Series("full", "soft", _band(full)),
            Series("the arm named above", "agent", _band(other)),
        ]
        panels.append(Panel(arm, series, x_label="10^12 FLOPs of agent and designer"))
    return figure("Held-out win rate without hint, at equal cost", panels, columns=3)


def _cost_curve(run: RunFacts, spent: float) -> Curve:
    """Return win rates at ten costs up to the common budget, so that the seeds can be averaged."""
    before = costs(run, "flops")
    at = [before[point.step] for point in run.heldout]
    rates = [figures.heldout_rate(point, run.families) or 0.0 for point in run.heldout]
    places = np.linspace(0.0, spent, PARTS + 1)
    return {float(x) / 1e12: float(np.interp(x, at, rates)) for x in places}


def _pools(runs: Sequence[RunFacts]) -> str:
    panels = [
        Panel(
            "plays won in the designer's pools",
            [
                *_with_seeds(
                    "with hint", "hint", [_parts(r, figures.hinted_win_rate) for r in runs]
                ),
                *_with_seeds(
                    "without hint", "agent", [_parts(r, figures.pool_win_rate) for r in runs]
                ),
            ],
        ),
        Panel(
            "hint regret",
            _with_seeds("hint regret", "bad", [_parts(r, figures.mean_regret) for r in runs]),
            percent=False,
        ),
        Panel(
            "new designs in the learnable band",
            _with_seeds("in the band", "held", [_parts(r, figures.band_share) for r in runs]),
        ),
        Panel(
            "tries that the validator accepted",
            _with_seeds("accepted", "designer", [_acceptance(run) for run in runs]),
        ),
    ]
    return figure("The designer's pools, full arm, by tenth of the run", panels)


def _levers(runs: Sequence[RunFacts]) -> str:
    panels = []
    for name in LEVERS:
        curves = [_parts(run, figures.lever(name)) for run in runs]
        if any(curves):
            panels.append(Panel(name, _with_seeds("designs", "designer", curves), percent=False))
    return figure(
        "Levers of the accepted designs, full arm, by tenth of the run", panels, columns=3
    )


def _parts(run: RunFacts, value: Callable[[Sequence[Made]], float | None]) -> Curve:
    """Return a figure of the designs made in each tenth of a run, at the tenth's middle step."""
    found = {}
    for first, last in _tenths(run):
        share = value([design for design in run.made if first <= design.step < last])
        if share is not None:
            found[(first + last - 1) / 2] = share
    return found


def _acceptance(run: RunFacts) -> Curve:
    found = {}
    for first, last in _tenths(run):
        tries = [tried for step, tried in run.tries.items() if first <= step < last]
        if total := sum(count for count, _ in tries):
            found[(first + last - 1) / 2] = sum(accepted for _, accepted in tries) / total
    return found


def _tenths(run: RunFacts) -> list[tuple[int, int]]:
    parts = min(PARTS, run.steps)
    edges = [round(run.steps * part / parts) for part in range(parts + 1)]
    return list(zip(edges, edges[1:], strict=False))


def _with_seeds(label: str, colour: str, curves: Sequence[Curve]) -> list[Series]:
    """Return the mean with its band, and each seed thin beneath it."""
    seeds = [
        Series("one seed", colour, [Point(x, y) for x, y in sorted(curve.items())], thin=True)
        for curve in curves
        if len(curves) > 1
    ]
    return [*seeds, Series(label, colour, _band(curves))]


def _band(curves: Sequence[Curve]) -> list[Point]:
    points = []
    for x in sorted({x for curve in curves for x in curve}):
        values = [curve[x] for curve in curves if x in curve]
        # Where a seed is missing the mean would jump for no reason of its own.
        if len(values) == len(curves):
            low, high = t_interval(values) or (None, None)
            points.append(Point(x, sum(values) / len(values), low, high))
    return points
