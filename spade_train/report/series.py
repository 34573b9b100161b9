"""Curves and tables of a run: metrics by step, pools by regeneration, what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from spade_train.analysis.band import learnable_band_share
from spade_train.analysis.diversity import cosine_similarity, vendi_score
from spade_train.analysis.duplicates import source_key
from spade_train.report.cards import Card
from spade_train.report.phases import spans, third_of
from spade_train.report.records import Row, rounded

COST_ROWS = ("tokens", "generations", "executions", "validator_calls", "seconds", "flops")
MAX_LEVERS = 6


def metric_columns(metrics: Sequence[Row]) -> dict[str, list[Any]]:
    """Return each metric as a list over the steps, None where a step lacks it."""
    keys = dict.fromkeys(key for row in metrics for key in row)
    columns = {key: [rounded(row.get(key)) for row in metrics] for key in keys}
    return {key: c for key, c in columns.items() if any(v is not None for v in c)}


def present(values: Iterable[Any]) -> list[float]:
    """Return the values that are there."""
    return [float(v) for v in values if v is not None]


def pool_table(cards: Sequence[Card], embedding: Any | None) -> list[Row]:
    """Return one row a regeneration: acceptance, difficulty, diversity, repeats.

    Args:
        cards: all cards of the run.
        embedding: rows for the accepted cards in their order, or None.
    """
    accepted_row = {}
    for row, index in enumerate(i for i, card in enumerate(cards) if card.accepted):
        accepted_row[index] = row
    by_step: dict[int, list[int]] = {}
    for index, card in enumerate(cards):
        by_step.setdefault(card.step, []).append(index)
    seen: set[str] = set()
    table: list[Row] = []
    for step in sorted(by_step):
        accepted = [i for i in by_step[step] if cards[i].accepted]
        rates = [r for i in accepted if (r := cards[i].win_rate) is not None]
        keys = [source_key(cards[i].source) for i in accepted]
        repeats = sum(key in seen or key in keys[:place] for place, key in enumerate(keys))
        seen.update(keys)
        rows = None if embedding is None else embedding[[accepted_row[i] for i in accepted]]
        diverse = None if rows is None or len(rows) < 2 else vendi_score(cosine_similarity(rows))
        table.append(
            {
                "step": step,
                "tries": len(by_step[step]),
                "accepted": len(accepted),
                "win": rounded(float(np.mean(rates))) if rates else None,
                "band": rounded(learnable_band_share(rates)),
                "repeats": rounded(repeats / len(keys)) if keys else None,
                "vendi": None if diverse is None else rounded(diverse / len(accepted)),
            }
        )
    return table


def lever_series(cards: Sequence[Card]) -> list[Row]:
    """Return for each lever its mean over the accepted designs of each regeneration.

    Levers that most accepted designs carry come first. One that never changes is no lever, and one
    that moves exactly as another does (a turn limit that equals the rounds) says nothing more:
    both are left out.
    """
    accepted = [card for card in cards if card.accepted]
    counts: dict[str, int] = {}
    for card in accepted:
        for name in card.levers:
            counts[name] = counts.get(name, 0) + 1
    found: list[Row] = []
    for name, count in sorted(counts.items(), key=lambda n: (-n[1], n[0] == "max_turns", n[0])):
        values = [card.levers[name] for card in accepted if name in card.levers]
        if count < max(3, len(accepted) // 10) or np.ptp(values) == 0:
            continue
        by_step: dict[int, list[float]] = {}
        for card in accepted:
            if name in card.levers:
                by_step.setdefault(card.step, []).append(card.levers[name])
        steps = sorted(by_step)
        means = [rounded(float(np.mean(by_step[s]))) for s in steps]
        errors = [rounded(_standard_error(by_step[s])) for s in steps]
        if all(means != row["mean"] for row in found):
            parts = [
                [i for i, step in enumerate(steps) if third_of(step, steps) == third]
                for third in range(3)
            ]
            bars = spans(steps, means, parts)
            found.append({"name": name, "steps": steps, "mean": means, "se": errors, "spans": bars})
    return found[:MAX_LEVERS]


def _standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def memory_table(cards: Sequence[Card], limit: int = 12) -> list[Row]:
    """Return the environments that stood in most prompts, and what came of those prompts."""
    used = [i for i, card in enumerate(cards) if card.children]
    used.sort(key=lambda i: (-len(cards[i].children), i))
    table = []
    for index in used[:limit]:
        children = [cards[i] for i in cards[index].children]
        rates = [r for child in children if (r := child.win_rate) is not None]
        table.append(
            {
                "env": index,
                "prompts": len(children),
                "accepted": sum(child.accepted for child in children),
                "win": rounded(float(np.mean(rates))) if rates else None,
            }
        )
    return table


def skill_table(cards: Sequence[Card]) -> list[Row]:
    """Return one row a skill: acceptance, and win rate and regret in the run's two halves."""
    steps = sorted({card.step for card in cards})
    middle = steps[len(steps) // 2] if steps else 0
    table = []
    for skill in sorted({str(card.design.get("skill") or "") for card in cards}):
        own = [card for card in cards if card.design.get("skill") == skill]
        halves = [[c for c in own if (c.step >= middle) == late] for late in (False, True)]
        table.append(
            {
                "skill": skill,
                "tries": len(own),
                "accepted": sum(card.accepted for card in own),
                "win": [_mean(card.win_rate for card in half) for half in halves],
                "regret": [_mean(card.regret for card in half) for half in halves],
                "se": [_error(card.regret for card in half) for half in halves],
            }
        )
    return table


def _mean(values: Iterable[float | None]) -> Any:
    there = present(values)
    return rounded(float(np.mean(there))) if there else None


def _error(values: Iterable[float | None]) -> Any:
    there = present(values)
    return rounded(_standard_error(there)) if len(there) > 1 else None


def cost_table(metrics: Sequence[Row]) -> list[Row]:
    """Return what each role spent: the last step's running totals."""
    totals: dict[str, dict[str, float]] = {}
    for key, value in (metrics[-1] if metrics else {}).items():
        what, slash, role = key.partition("/")
        if slash and what in COST_ROWS and rounded(value) is not None:
            totals.setdefault(role, {})[what] = value
    return [{"role": role, **values} for role, values in totals.items()]
