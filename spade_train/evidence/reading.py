"""What the figures say, in sentences that are made from them and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from spade_train.analysis.intervals import t_interval
from spade_train.evidence import figures
from spade_train.evidence.arms import FULL
from spade_train.evidence.collect import Evidence
from spade_train.evidence.criteria import signed
from spade_train.evidence.equal_cost import Comparison, Interval
from spade_train.evidence.gather import mean
from spade_train.evidence.tables import COST_NAMES, EMBEDDINGS, number, over_seeds, verdict


def in_short(evidence: Evidence) -> list[str]:
    """Return the findings, one sentence or two each."""
    found = [*_criteria(evidence), *_heldout(evidence)]
    found += [*_arms(evidence), *_variety(evidence), *_making(evidence)]
    return found


def _criteria(evidence: Evidence) -> list[str]:
    if not evidence.checks:
        return ["No run of the arm `full` is finished, so the criteria can't be checked."]
    by_criterion = list(zip(*evidence.checks.values(), strict=True))
    rows = [(checks[0].name, verdict(checks)) for checks in by_criterion if not checks[0].aim]
    met = [name for name, word in rows if word == "met"]
    rest = [f"{name} ({word.strip('*')})" for name, word in rows if word != "met"]
    text = f"{len(met)} of {len(rows)} criteria are met on every seed"
    text += f": {'; '.join(met)}." if met else "."
    return [text + (f" The others: {'; '.join(rest)}." if rest else "")]


def _heldout(evidence: Evidence) -> list[str]:
    runs = [run for run in evidence.full if len(run.heldout) > 1]
    if not runs:
        return []
    changes = [mean(figures.heldout_change(run)) or 0.0 for run in runs]
    ends = [
        over_seeds([figures.heldout_rate(run.heldout[end], run.families) for run in runs])
        for end in (0, -1)
    ]
    interval = t_interval(changes)
    text = (
        f"On the held-out environments the full arm went from {ends[0]} to {ends[1]} of plays won "
        f"without hint: {signed(sum(changes) / len(changes), interval)}"
    )
    text += f", 95 % interval over {len(runs)} seeds" if interval else ", one seed"
    base = evidence.baselines
    if base is not None:
        text += (
            f". Any option on show wins {number(base.random)}, the reference solutions "
            f"{number(base.scripted)}"
        )
    return [f"{text}. {_moved(interval)}" if interval else f"{text}."]


def _moved(interval: Interval) -> str:
    if interval[0] > 0:
        return "That is a rise outside the interval."
    return "That is a fall outside the interval." if interval[1] < 0 else "That may be chance."


def _arms(evidence: Evidence) -> list[str]:
    found = []
    for kind, comparisons in evidence.comparisons.items():
        parts = []
        for one in comparisons:
            if one.arm == FULL or not one.gains:
                continue
            value = sum(one.gains.values()) / len(one.gains)
            parts.append(f"`{one.arm}` {signed(value, one.gain_interval)}, {_told(one)}")
        if parts:
            found.append(
                f"At equal {COST_NAMES[kind]}, the full arm's gain in held-out win rate: "
                f"{'; '.join(parts)}."
            )
    return found


def _told(one: Comparison) -> str:
    interval = one.gain_interval
    if interval is None:
        return "too few seeds for an interval"
    if interval[0] > 0:
        return "the full arm is better"
    return "the full arm is worse" if interval[1] < 0 else "no difference shown"


def _variety(evidence: Evidence) -> list[str]:
    found = []
    for embedder, varieties in evidence.varieties.items():
        pairs = [
            (varieties[FULL, run.seed], varieties["no_corpus", run.seed])
            for run in evidence.full
            if (FULL, run.seed) in varieties and ("no_corpus", run.seed) in varieties
        ]
        if not pairs:
            continue
        vendi = [a.vendi - b.vendi for a, b in pairs]
        near = [a.near_duplicates - b.near_duplicates for a, b in pairs]
        found.append(
            f"With the corpus {pairs[0][0].n} designs are worth "
            f"{over_seeds([a.vendi for a, _ in pairs])} different ones (Vendi score over "
            f"{EMBEDDINGS[embedder]}), without it {over_seeds([b.vendi for _, b in pairs])}: a "
            f"difference of {_signed(vendi)}. Near-duplicates: "
            f"{over_seeds([a.near_duplicates for a, _ in pairs])} with, "
            f"{over_seeds([b.near_duplicates for _, b in pairs])} without, a difference of "
            f"{_signed(near)}."
        )
    return found


def _signed(differences: Sequence[float]) -> str:
    return signed(sum(differences) / len(differences), t_interval(differences))


def _making(evidence: Evidence) -> list[str]:
    runs = [run for of_arm in evidence.runs.values() for run in of_arm]
    codes = {attempt.code for run in runs for attempt in run.stamp.attempts}
    found = []
    if len(codes) > 1:
        found.append(
            f"The runs were made by {len(codes)} versions of the code (by hash of its sources); "
            "what differs between arms may be owed to that."
        )
    if evidence.missing:
        found.append(f"Not finished, and left out: {', '.join(evidence.missing)}.")
    return found
