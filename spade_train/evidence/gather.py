"""Reads a finished run's folder into the facts that the evidence is made of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spade_runtime.errors import UsageError
from spade_train.analysis.levers import levers
from spade_train.config import RunConfig, load
from spade_train.evidence.arms import Planned
from spade_train.evidence.levers import LEVERS, rule_reach
from spade_train.evidence.stamps import Stamp
from spade_train.heldout import heldout_environments
from spade_train.report.cards import Card, build_cards
from spade_train.report.records import Row, read_jsonl, read_run
from spade_train.state import Checkpoints

QUARTERS = 4
COST_ROLES = ("agent", "designer", "hint")
_CLASS = re.compile(r"^class\s+(\w+?)(?:Env)?\s*[(:]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Made:
    """One accepted design and how it was played.

    Attributes:
        step: that made it.
        family: its class's name without `Env`.
        source: its code.
        plays, wins: unhinted plays that count, and those that solved it.
        hinted_plays, hinted_wins: the same with its hint.
        regret: its hint regret, None where it was not measured.
        levers: what sets its difficulty: `rounds`, `options`, `reach`, as far as its source tells.
    """

    step: int
    family: str
    source: str
    plays: int
    wins: int
    hinted_plays: int
    hinted_wins: int
    regret: float | None
    levers: Mapping[str, float]

    @property
    def win_rate(self) -> float | None:
        """Share of unhinted plays that solved it."""
        return self.wins / self.plays if self.plays else None


@dataclass(frozen=True, slots=True)
class HeldoutPoint:
    """One measurement on the held-out environments.

    Attributes:
        step: steps that were trained before it.
        unhinted: name of the environment -> share of its plays that solved it.
        hinted: the same with its hint.
    """

    step: int
    unhinted: Mapping[str, float]
    hinted: Mapping[str, float]


@dataclass(slots=True)
class RunFacts:
    """A finished run.

    Attributes:
        arm: its arm's name.
        seed: of the run.
        config: as it was resolved.
        stamp: what it was made with.
        metrics: one line a step, the flush of the last window at the end.
        tries: step -> (tries, accepted).
        made: accepted designs, in order.
        heldout: measurements, in order.
        ledger: what the run spent, by role, as its last checkpoint has it.
        families: held-out environment -> (family, whether the warm start never saw the family).
    """

    arm: str
    seed: int
    config: RunConfig
    stamp: Stamp
    metrics: list[Row]
    tries: dict[int, tuple[int, int]]
    made: list[Made]
    heldout: list[HeldoutPoint]
    ledger: Mapping[str, Any] = field(default_factory=dict)
    families: dict[str, tuple[str, bool]] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """Steps of the run."""
        return self.config.steps

    def quarter(self, step: int) -> int:
        """Return the quarter of the run in which a step lies, 0 to 3."""
        return min(QUARTERS - 1, QUARTERS * step // self.steps)

    def of_quarter(self, quarter: int) -> list[Made]:
        """Return the designs made in a quarter."""
        return [design for design in self.made if self.quarter(design.step) == quarter]


def gather(planned: Planned) -> RunFacts:
    """Read a finished run.

    Raises:
        UsageError: the folder holds no run, or what it holds is damaged.
    """
    records = read_run(planned.folder)
    _refuse_damaged(records.metrics, planned.folder / "metrics.jsonl")
    config = load(planned.folder / "config.yaml")
    cards = build_cards(records)
    tries: dict[int, tuple[int, int]] = {}
    for card in cards:
        count, accepted = tries.get(card.step, (0, 0))
        tries[card.step] = (count + 1, accepted + card.accepted)
    stamp = Stamp.read(planned.stamp)
    assert stamp is not None  # a run without one is stale, and was refused before
    return RunFacts(
        arm=planned.arm,
        seed=planned.seed,
        config=config,
        stamp=stamp,
        metrics=records.metrics,
        tries=tries,
        made=[_made(card) for card in cards if card.accepted],
        heldout=heldout_points(planned.folder / "episodes"),
        ledger=Checkpoints(planned.folder / "checkpoints").newest()[1]["state"]["ledger"],
        families=heldout_families(config),
    )


def _made(card: Card) -> Made:
    played, source = card.played, card.source
    found = levers(source)
    reach = rule_reach(source)
    if reach is not None:
        found["reach"] = reach
    named = _CLASS.search(source)
    return Made(
        step=card.step,
        family=named.group(1) if named else "",
        source=source,
        plays=played.plays if played else 0,
        wins=played.wins if played else 0,
        hinted_plays=played.hinted_plays if played else 0,
        hinted_wins=played.hinted_wins if played else 0,
        regret=card.regret,
        levers={name: found[name] for name in LEVERS if name in found},
    )


def _refuse_damaged(metrics: Sequence[Row], path: Path) -> None:
    """Refuse a run whose cost can't be told."""
    for row in metrics:
        for key in ("seconds", "seconds_heldout", *(f"flops/{role}" for role in COST_ROLES)):
            value = row.get(key)
            if isinstance(value, bool) or not isinstance(value, int | float | None):
                raise _damaged(path, f"{key} of step {row['step']} is no number")
        if row.get("seconds") is None:
            raise _damaged(path, f"the line of step {row['step']} has no `seconds`")


def _damaged(path: Path, why: str) -> UsageError:
    run = path.parent if path.name == "metrics.jsonl" else path.parent.parent
    return UsageError(f"{path}: {why}; remove the folder {run}, and the run is done again")


def heldout_points(episodes: Path) -> list[HeldoutPoint]:
    """Read the measurements that a run kept, in the order of their steps.

    Raises:
        UsageError: a line says nothing of who played what.
    """
    points = []
    for path in sorted(episodes.glob("heldout-*.jsonl")):
        if not path.stem.removeprefix("heldout-").isdecimal():
            continue  # a copy that somebody made
        solved: dict[str, dict[str, list[bool]]] = {"unhinted": {}, "hinted": {}}
        problems: list[str] = []
        for row in read_jsonl(path, problems):
            if row.get("arm") not in ("unhinted", "hinted") or not isinstance(row.get("name"), str):
                raise _damaged(path, "a line has no `arm` and `name` of a play")
            if not row.get("fault"):
                solved[row["arm"]].setdefault(row["name"], []).append(bool(row.get("solved")))
        if problems:
            raise _damaged(path, problems[0])
        shares = {
            arm: {name: sum(plays) / len(plays) for name, plays in of_arm.items()}
            for arm, of_arm in solved.items()
        }
        step = int(path.stem.removeprefix("heldout-"))
        points.append(HeldoutPoint(step, shares["unhinted"], shares["hinted"]))
    return points


def heldout_families(config: RunConfig) -> dict[str, tuple[str, bool]]:
    """Return each held-out environment's family, and whether the warm start never saw it.

    Of a user's folder nobody knows what a warm start saw, so it counts as known.
    """
    if config.model == "tiny" and not config.heldout:
        from spade_train.tiny.heldout import environments

        return {e.name: (e.family, e.new_family) for e in environments()}
    found = {}
    for one in heldout_environments(config):
        named = _CLASS.search(one.source)
        found[one.name] = (named.group(1) if named else one.name, False)
    return found


def costs(run: RunFacts, kind: str) -> list[float]:
    """Return what agent and designer have cost before each step, and at the run's end.

    Args:
        run: the run.
        kind: `flops`: of the ledger's roles agent, designer and hint; `cpu_seconds`: of the run's
            processes, shared out over the steps by their wall-clock seconds. Measuring on the
            held-out environments is no part of either.

    Returns:
        steps + 1 numbers; the last one holds the flush of the last window too.
    """
    totals, spent = [0.0], 0.0
    rate = run.stamp.cpu_rate or 1.0
    for row in run.metrics:
        if kind == "flops":
            spent = sum(float(row.get(f"flops/{role}") or 0.0) for role in COST_ROLES)
        else:
            spent += rate * (float(row["seconds"]) - float(row.get("seconds_heldout") or 0.0))
        totals.append(spent)
    # The flush has a line of its own, after that of the last step.
    return [*totals[: run.steps], totals[-1]]


def dumped(value: Any) -> str:
    """Return JSON as it is committed: sorted, one key a line."""
    return json.dumps(value, indent=1, sort_keys=True) + "\n"


def rates(point: HeldoutPoint, arm: str = "unhinted") -> Mapping[str, float]:
    """Return a measurement's shares of one arm."""
    return point.unhinted if arm == "unhinted" else point.hinted


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None of nothing."""
    return sum(values) / len(values) if values else None
