"""Arms at equal cost: held-out win rates where each run has spent the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spade_train.analysis.intervals import bootstrap_interval, t_interval
from spade_train.evidence.gather import RunFacts, costs, mean

COSTS = ("flops", "cpu_seconds")
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One arm beside the full one at equal cost.

    Attributes:
        arm: its name.
        win_rates: seed -> its held-out win rate at the budget.
        interval: of their mean over seeds (Student's t).
        gains: seed -> the full arm's win rate minus this one's, both with that seed.
        gain_interval: of the mean gain over seeds (Student's t).
        environments_interval: of the same mean over held-out environments (bootstrap), the seeds
            as they are.
    """

    arm: str
    win_rates: Mapping[int, float]
    interval: Interval | None
    gains: Mapping[int, float]
    gain_interval: Interval | None
    environments_interval: Interval | None


def budget(runs: Sequence[RunFacts], kind: str) -> float:
    """Return the largest cost that every run has reached."""
    return min(costs(run, kind)[-1] for run in runs)


def rates_at(run: RunFacts, kind: str, spent: float) -> dict[str, float]:
    """Return each held-out environment's unhinted win rate where a run has spent so much.

    Between two measurements it is taken along the line that joins them.
    """
    before = costs(run, kind)
    at = [before[point.step] for point in run.heldout]
    names = [n for n in run.heldout[0].unhinted if all(n in p.unhinted for p in run.heldout)]
    return {
        name: float(np.interp(spent, at, [point.unhinted[name] for point in run.heldout]))
        for name in names
    }


def gain(full: RunFacts, other: RunFacts, kind: str, spent: float) -> dict[str, float]:
    """Return each environment's win rate under `full` minus that under `other`."""
    ours, theirs = rates_at(full, kind, spent), rates_at(other, kind, spent)
    return {name: ours[name] - theirs[name] for name in ours if name in theirs}


def compare(
    arm: str, runs: Sequence[RunFacts], full: Sequence[RunFacts], kind: str, spent: float
) -> Comparison:
    """Compare an arm's runs with the full arm's runs of the same seeds.

    Args:
        arm: its name.
        runs: its runs, one a seed, each with at least one measurement.
        full: those of the full arm.
        kind: of cost.
        spent: the common budget.
    """
    rates = {run.seed: float(mean(list(rates_at(run, kind, spent).values())) or 0) for run in runs}
    partners = {run.seed: run for run in full}
    gains = {
        run.seed: gain(partners[run.seed], run, kind, spent)
        for run in runs
        if run.seed in partners and run is not partners[run.seed]
    }
    by_seed = {seed: float(mean(list(found.values())) or 0) for seed, found in gains.items()}
    names = [n for n in next(iter(gains.values()), {}) if all(n in g for g in gains.values())]
    by_environment = [float(np.mean([found[name] for found in gains.values()])) for name in names]
    return Comparison(
        arm,
        rates,
        t_interval(list(rates.values())),
        by_seed,
        t_interval(list(by_seed.values())),
        bootstrap_interval(by_environment),
    )
