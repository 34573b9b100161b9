"""Writes the evidence: a page of tables and sentences, its figures, the ledgers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spade_train.evidence import tables
from spade_train.evidence.charts import charts
from spade_train.evidence.collect import Evidence
from spade_train.evidence.figures import MASTERED
from spade_train.evidence.gather import RunFacts, dumped
from spade_train.evidence.reading import in_short
from spade_train.run_folder import writing

PAGE = "README.md"
LEDGERS = "ledgers.json"
# Written by people, never by the program.
GUIDE, REMARKS = "how-to-read.md", "remarks.md"
_ALT = {
    "heldout.svg": "Held-out win rate by step with and without hint",
    "arms.svg": "Held-out win rate by cost, each arm beside the full one",
    "pools.svg": "Win rate, hint regret, band share and acceptance by tenth of the run",
    "levers.svg": "Levers of the designs by tenth of the run",
}


def write_pages(evidence: Evidence, out: Path) -> list[Path]:
    """Write page, figures and ledgers into a folder; what people wrote there stays.

    Returns:
        The files.

    Raises:
        SpadeError: the folder can't be written.
    """
    drawn = charts(evidence)
    texts = {
        PAGE: page(evidence, sorted(drawn), out),
        LEDGERS: dumped(ledgers(evidence)),
        **drawn,
    }
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        for name in _ALT.keys() - drawn.keys():
            (out / name).unlink(missing_ok=True)
        for name, text in texts.items():
            (out / name).write_text(text, encoding="utf-8")
    return [out / name for name in texts]


def page(evidence: Evidence, drawn: Sequence[str], out: Path) -> str:
    """Return the page as Markdown."""
    parts = [
        "# Evidence",
        _made_by(evidence),
        "## In short",
        "\n".join(f"- {sentence}" for sentence in in_short(evidence)),
    ]
    if (out / REMARKS).is_file():
        parts.append(f"What people make of it: [{REMARKS}]({REMARKS}).")
    if evidence.checks:
        parts += ["## The criteria, seed by seed", tables.criteria_table(evidence)]
    parts += ["## The arms", tables.arms_table(evidence), *_heldout(evidence, drawn)]
    parts += [*_equal_cost(evidence, drawn), *_pools(evidence, drawn), *_rest(evidence)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _made_by(evidence: Evidence) -> str:
    runs = [run for of_arm in evidence.runs.values() for run in of_arm]
    first = runs[0]
    steps = ", ".join(str(n) for n in sorted({run.steps for run in runs}))
    return (
        f"Written by `make evidence` from {len(runs)} finished runs of "
        f"`preset={first.config.preset}` ({steps} steps each), and overwritten by it. ± and "
        f"brackets are 95 % intervals over seeds (Student's t) unless a table says otherwise; "
        f"{tables.NOTHING} means that there is nothing to say. How each figure is made and what "
        f"it can't tell: [{GUIDE}]({GUIDE}). Hashes, seconds and the whole ledger of each run: "
        f"[{LEDGERS}]({LEDGERS})."
    )


def _heldout(evidence: Evidence, drawn: Sequence[str]) -> list[str]:
    parts = ["## Held-out win rate", *_image("heldout.svg", drawn), tables.heldout_table(evidence)]
    runs = [run for run in evidence.full if len(run.heldout) > 1]
    if runs:
        parts += ["### By family, full arm", tables.family_table(runs)]
    return parts


def _equal_cost(evidence: Evidence, drawn: Sequence[str]) -> list[str]:
    if not any(evidence.comparisons.values()):
        return []
    parts = ["## At equal cost", *_image("arms.svg", drawn)]
    for kind, comparisons in evidence.comparisons.items():
        spent = evidence.budgets[kind]
        words = (
            f"{spent / 1e12:.3g} x 10^12 FLOPs" if kind == "flops" else f"{spent:.0f} CPU seconds"
        )
        parts += [
            f"### {tables.COST_NAMES[kind]}",
            f"Each run's held-out win rate without hint where it had spent {words} on agent and "
            "designer: what the cheapest run spent in all.",
            tables.equal_cost_table(comparisons),
        ]
    return parts


def _pools(evidence: Evidence, drawn: Sequence[str]) -> list[str]:
    parts = ["## The designer's pools", *_image("pools.svg", drawn)]
    if evidence.full:
        parts += ["### Full arm, by quarter", tables.quarters_table(evidence.full)]
    parts += ["### All arms", tables.arms_quarters_table(evidence)]
    if evidence.full:
        parts += [
            "## Levers, full arm",
            *_image("levers.svg", drawn),
            "Difficulty is the mean of a design's levers in standard deviations from its family's "
            "mean over the run: below 0 is easier than usual, above 0 harder.",
            tables.levers_table(evidence.full),
            "## Hint regret by family, full arm",
            "Mean over the quarter's designs ± one standard error. Mastered: more than "
            f"{MASTERED:.0%} of the plays without hint won in the last quarter.",
            tables.regret_table(evidence.full),
        ]
    return parts


def _rest(evidence: Evidence) -> list[str]:
    parts = []
    if any(evidence.varieties.values()):
        parts += [
            "## How different the designs are",
            "The same number n of accepted designs from every run, the mean over several draws.",
            tables.variety_table(evidence),
        ]
    return [*parts, "## What it cost", tables.cost_table(evidence)]


def _image(name: str, drawn: Sequence[str]) -> list[str]:
    return [f"![{_ALT[name]}]({name})"] if name in drawn else []


def ledgers(evidence: Evidence) -> list[dict[str, Any]]:
    """Return what each run was made with and what it spent."""
    return [_ledger(run) for of_arm in evidence.runs.values() for run in of_arm]


def _ledger(run: RunFacts) -> dict[str, Any]:
    model = run.config.model
    return {
        "arm": run.arm,
        "seed": run.seed,
        "steps": run.steps,
        # A folder's place is nobody's business; its weights are named by their hash.
        "model": model if "/" not in model else Path(model).name,
        "config_sha256": run.stamp.config,
        "weights_sha256": run.stamp.weights,
        "heldout_sha256": run.stamp.heldout,
        "attempts": [asdict(attempt) for attempt in run.stamp.attempts],
        "seconds": round(sum(float(row["seconds"]) for row in run.metrics), 1),
        "seconds_heldout": round(sum(float(r.get("seconds_heldout") or 0) for r in run.metrics), 1),
        "ledger": run.ledger,
    }
