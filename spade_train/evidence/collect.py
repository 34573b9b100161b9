"""Everything that the pages say, worked out once from the finished runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spade_train.analysis.embedding import Embedder
from spade_train.analysis.intervals import t_interval
from spade_train.evidence.arms import FROZEN, FULL
from spade_train.evidence.baselines import Baselines
from spade_train.evidence.criteria import Check, check
from spade_train.evidence.equal_cost import COSTS, Comparison, budget, compare
from spade_train.evidence.gather import RunFacts
from spade_train.evidence.variety import Variety, variety

# Reading a source with the sentence model takes a hundred times as long.
DRAWS: Mapping[Embedder, int] = {"tfidf": 5, "sbert": 1}
Runs = Mapping[str, Sequence[RunFacts]]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the pages are written from.

    Attributes:
        runs: arm -> its finished runs by seed; arms without any are left out.
        missing: names of planned runs that are not finished.
        baselines: rows without training, None where they were not measured.
        budgets: kind of cost -> the largest that every run has reached.
        comparisons: kind of cost -> the arms beside the full one.
        varieties: embedder -> (arm, seed) -> how different its designs are.
        checks: seed of the full arm -> its criteria.
    """

    runs: Runs
    missing: Sequence[str]
    baselines: Baselines | None
    budgets: Mapping[str, float]
    comparisons: Mapping[str, Sequence[Comparison]]
    varieties: Mapping[Embedder, Mapping[tuple[str, int], Variety]]
    checks: Mapping[int, Sequence[Check]]

    @property
    def full(self) -> Sequence[RunFacts]:
        """The full arm's runs."""
        return self.runs.get(FULL, ())


def evidence_of(
    runs: Runs,
    *,
    missing: Sequence[str] = (),
    baselines: Baselines | None = None,
    embedders: Sequence[Embedder] = ("tfidf",),
) -> Evidence:
    """Work out the evidence.

    Args:
        runs: arm -> its finished runs; at least one in all.
        missing: names of planned runs that are not finished.
        baselines: rows without training.
        embedders: spaces in which designs are compared; `tfidf` first.
    """
    every = [run for of_arm in runs.values() for run in of_arm]
    full = runs.get(FULL, ())
    frozen = {run.seed: run for run in runs.get(FROZEN, ())}
    measured = [run for run in every if len(run.heldout) > 1]
    budgets = {kind: budget(measured, kind) for kind in COSTS} if measured else {}
    comparisons = {
        kind: [
            compare(arm, comparable, full, kind, spent)
            for arm, of_arm in runs.items()
            if (comparable := [run for run in of_arm if run in measured])
        ]
        for kind, spent in budgets.items()
    }
    return Evidence(
        runs=runs,
        missing=missing,
        baselines=baselines,
        budgets=budgets,
        comparisons=comparisons,
        varieties={name: variety(every, name, draws=DRAWS[name]) for name in embedders},
        checks={run.seed: check(run, frozen.get(run.seed), budgets.get("flops")) for run in full},
    )


def spread(values: Sequence[float | None]) -> tuple[float, float | None] | None:
    """Return the mean over seeds and the half-width of its t interval; None of nothing."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    interval = t_interval(known)
    half = None if interval is None else (interval[1] - interval[0]) / 2
    return sum(known) / len(known), half
