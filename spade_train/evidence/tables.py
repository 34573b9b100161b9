"""The tables of the evidence, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from spade_train.evidence import figures
from spade_train.evidence.arms import ARMS
from spade_train.evidence.collect import Evidence, spread
from spade_train.evidence.criteria import Check, signed
from spade_train.evidence.equal_cost import Comparison
from spade_train.evidence.gather import QUARTERS, HeldoutPoint, RunFacts, mean
from spade_train.evidence.levers import LEVERS

NOTHING = "–"
COST_NAMES = {"flops": "FLOPs", "cpu_seconds": "CPU seconds"}
EMBEDDINGS = {"tfidf": "TF-IDF", "sbert": "SBERT"}
_QUARTER_NAMES = tuple(f"quarter {number + 1}" for number in range(QUARTERS))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; a bar in a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines
    )


def number(value: float | None, digits: int = 2) -> str:
    """Return a number, a dash where there is none."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def over_seeds(values: Sequence[float | None], digits: int = 2) -> str:
    """Return the mean over seeds and, from two seeds on, the half-width of its 95 % interval.

    >>> over_seeds([0.4, 0.5, 0.6]), over_seeds([0.5]), over_seeds([None])
    ('0.50 ± 0.25', '0.50', '–')
    """
    found = spread(values)
    if found is None:
        return NOTHING
    value, half = found
    text = f"{value:.{digits}f}"
    return text if half is None else f"{text} ± {half:.{digits}f}"


def arms_table(evidence: Evidence) -> str:
    """Return what each arm is and which of its seeds are finished."""
    rows = []
    for arm in ARMS:
        runs = evidence.runs.get(arm.name, ())
        seeds = ", ".join(str(run.seed) for run in runs) or "none"
        words = " ".join(f"`{word}`" for word in arm.words) or NOTHING
        rows.append([f"`{arm.name}`", arm.about, words, seeds])
    return table(["arm", "what it is", "words of `spade train`", "finished seeds"], rows)


def criteria_table(evidence: Evidence) -> str:
    """Return the criteria by seed, and whether each is met on every one."""
    seeds = sorted(evidence.checks)
    head = ["criterion", "target", *(f"seed {seed}" for seed in seeds), "on every seed"]
    rows = []
    for place, first in enumerate(evidence.checks[seeds[0]]):
        checks = [evidence.checks[seed][place] for seed in seeds]
        name = f"{first.name} (an aim beyond)" if first.aim else first.name
        rows.append([name, first.target, *map(_checked, checks), verdict(checks)])
    return table(head, rows)


def _checked(check: Check) -> str:
    met = {True: "met", False: "**not met**", None: "unknown"}[check.met]
    return f"{check.value}: {met}"


def verdict(checks: Sequence[Check]) -> str:
    """Return whether a criterion is met on every seed, in a word."""
    if all(check.met for check in checks):
        return "met"
    return "**not met**" if any(check.met is False for check in checks) else "unknown"


def heldout_table(evidence: Evidence) -> str:
    """Return held-out win rates before, halfway and after, for every arm, baselines first."""
    head = ["", "before", "halfway", "after", "change", "with hint, before", "with hint, after"]
    rows = []
    base = evidence.baselines
    if base is not None:
        rows.append(["any option on show", number(base.random), *[NOTHING] * 5])
        rows.append(["reference solutions", number(base.scripted), *[NOTHING] * 5])
        error = "" if base.warm_start_se is None else f" ± {1.96 * base.warm_start_se:.2f}"
        warm = f"{number(base.warm_start)}{error}"
        hinted = number(base.warm_start_hinted)
        rows.append(
            ["warm start, untrained (± over environments)", warm, *[NOTHING] * 3, hinted, NOTHING]
        )
    for arm, runs in evidence.runs.items():
        measured = [run for run in runs if len(run.heldout) > 1]
        if measured:
            rows.append([f"`{arm}`", *_heldout_cells(measured)])
    return table(head, rows)


def _heldout_cells(runs: Sequence[RunFacts]) -> list[str]:
    def at(point: Callable[[RunFacts], HeldoutPoint | None], arm: str) -> str:
        found = [(run, point(run)) for run in runs]
        return over_seeds(
            [figures.heldout_rate(p, run.families, arm=arm) for run, p in found if p is not None]
        )

    changes = [mean(figures.heldout_change(run)) for run in runs]
    return [
        at(lambda run: run.heldout[0], "unhinted"),
        at(figures.middle, "unhinted"),
        at(lambda run: run.heldout[-1], "unhinted"),
        over_seeds(changes),
        at(lambda run: run.heldout[0], "hinted"),
        at(lambda run: run.heldout[-1], "hinted"),
    ]


def family_table(runs: Sequence[RunFacts]) -> str:
    """Return the full arm's held-out win rates by family, known families first."""
    families = dict(runs[0].families.values())
    groups = [("all", "all")]
    if any(families.values()):
        groups += [("known", "known families"), ("new", "new families")]
    names = [*groups, *((name, name) for name in sorted(families, key=lambda n: (families[n], n)))]
    rows = []
    for group, label in names:
        count = len(figures.heldout_change(runs[0], group))
        if not count:
            continue
        if group in families:
            label += " (new)" if families[group] else ""
        cells = [
            over_seeds(
                [figures.heldout_rate(run.heldout[end], run.families, group, arm) for run in runs]
            )
            for arm in ("unhinted", "hinted")
            for end in (0, -1)
        ]
        rows.append([label, str(count), *cells])
    head = ["held-out family", "environments", "before", "after", "with hint, before"]
    return table([*head, "with hint, after"], rows)


def equal_cost_table(comparisons: Sequence[Comparison]) -> str:
    """Return each arm's win rate at one budget, and what the full arm gains on it."""
    rows = []
    for one in comparisons:
        gain, environments = NOTHING, NOTHING
        if one.gains:
            value = sum(one.gains.values()) / len(one.gains)
            gain = signed(value, one.gain_interval)
            environments = signed(value, one.environments_interval)
        rates = over_seeds(list(one.win_rates.values()))
        rows.append([f"`{one.arm}`", rates, gain, environments])
    return table(
        [
            "arm",
            "held-out win rate",
            "full minus this, interval over seeds",
            "the same, interval over environments",
        ],
        rows,
    )


def quarters_table(runs: Sequence[RunFacts]) -> str:
    """Return one arm's pools by quarter, the mean over seeds."""
    rows = []
    for name, figure in figures.POOL_FIGURES.items():
        by_run = [figures.by_quarter(run, figure) for run in runs]
        rows.append([name, *(over_seeds(column) for column in zip(*by_run, strict=True))])
    by_run = [figures.acceptance_by_quarter(run) for run in runs]
    lowest = [figures.lowest_acceptance(run) for run in runs]
    rows.insert(4, ["acceptance", *(over_seeds(column) for column in zip(*by_run, strict=True))])
    rows.insert(5, ["acceptance, lowest tenth of a run", *[""] * 3, over_seeds(lowest)])
    return table(["in the designer's pools", *_QUARTER_NAMES], rows)


def arms_quarters_table(evidence: Evidence) -> str:
    """Return the first and the last quarter of every arm's pools."""
    names = ("win rate", "hint regret", "in the learnable band")
    head = ["arm", *(f"{name}, {end}" for name in names for end in ("first", "last"))]
    rows = []
    for arm, runs in evidence.runs.items():
        cells = []
        for name in names:
            by_run = [figures.by_quarter(run, figures.POOL_FIGURES[name]) for run in runs]
            cells += [over_seeds([values[end] for values in by_run]) for end in (0, -1)]
        lowest = over_seeds([figures.lowest_acceptance(run) for run in runs])
        rows.append([f"`{arm}`", *cells, lowest])
    return table([*head, "acceptance, lowest tenth"], rows)


def levers_table(runs: Sequence[RunFacts]) -> str:
    """Return the levers of the designs by quarter, seed by seed."""
    rows = []
    for run in runs:
        hard = figures.difficulty_by_quarter(run)
        cells = [NOTHING if e is None else _with_error(e) for e in hard]
        rows.append([str(run.seed), "difficulty (SD, ± SE)", *cells])
        for name in LEVERS:
            values = figures.by_quarter(run, figures.lever(name))
            if any(value is not None for value in values):
                rows.append([str(run.seed), name, *map(number, values)])
    return table(["seed", "lever", *_QUARTER_NAMES], rows)


def regret_table(runs: Sequence[RunFacts]) -> str:
    """Return hint regret by family of designs and quarter, seed by seed."""
    rows = []
    for run in runs:
        for family in figures.family_figures(run):
            last = family.win_rates[-1]
            mastered = "yes" if family.mastered else "no"
            cells = [NOTHING if e is None else _with_error(e) for e in family.regrets]
            rows.append(
                [str(run.seed), family.name, str(family.designs), *cells, number(last), mastered]
            )
    head = ["seed", "family", "designs", *_QUARTER_NAMES, "win rate, quarter 4", "mastered"]
    return table(head, rows)


def _with_error(one: figures.Estimate) -> str:
    return f"{one.value:+.2f}" + ("" if one.error is None else f" ± {one.error:.2f}")


def variety_table(evidence: Evidence) -> str:
    """Return how different the designs of each arm are, at equal n."""
    rows = []
    for arm, runs in evidence.runs.items():
        for embedder, found in evidence.varieties.items():
            own = [found[arm, run.seed] for run in runs if (arm, run.seed) in found]
            if own:
                rows.append(
                    [
                        f"`{arm}`",
                        EMBEDDINGS[embedder],
                        str(own[0].n),
                        over_seeds([v.vendi for v in own]),
                        over_seeds([v.vendi / v.n for v in own], 3),
                        over_seeds([v.distance for v in own]),
                        over_seeds([v.near_duplicates for v in own]),
                    ]
                )
    head = ["arm", "space", "n", "Vendi", "Vendi / n", "mean distance", "near-duplicates"]
    return table(head, rows)


def cost_table(evidence: Evidence) -> str:
    """Return what the runs of each arm cost, the mean over seeds."""
    rows = []
    for arm, runs in evidence.runs.items():
        accounts = [run.ledger["accounts"] for run in runs]
        flops = [sum(a["flops"] for r, a in one.items() if r != "heldout") for one in accounts]
        tokens = [
            sum(a["tokens_out"] for r, a in one.items() if r != "heldout") for one in accounts
        ]
        seconds = [sum(float(row["seconds"]) for row in run.metrics) for run in runs]
        cpu = [
            None if run.stamp.cpu_rate is None else run.stamp.cpu_rate * wall
            for run, wall in zip(runs, seconds, strict=True)
        ]
        rows.append(
            [
                f"`{arm}`",
                over_seeds([value / 1e12 for value in flops]),
                over_seeds([value / 1e6 for value in tokens]),
                over_seeds(seconds, 0),
                over_seeds(cpu, 0),
            ]
        )
    return table(
        ["arm", "10^12 FLOPs", "million tokens sampled", "seconds", "CPU seconds, measuring too"],
        rows,
    )
