"""Everything the page holds: a small index that is read at once, and chunks read when asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spade_runtime.codes import CODES
from spade_train.analysis.embedding import Embedder, embed, project
from spade_train.analysis.funnel import NO_CODE, OTHER_KIND, acceptance_funnel, stopping_code
from spade_train.analysis.security import security_table
from spade_train.report.cards import Card, build_cards, shown_episode
from spade_train.report.charts import main_charts, other_metrics
from spade_train.report.duel import duel
from spade_train.report.points import points
from spade_train.report.records import Row, RunRecords, rounded
from spade_train.report.series import (
    cost_table,
    lever_series,
    memory_table,
    metric_columns,
    pool_table,
    skill_table,
)
from spade_train.report.story import figures, headline
from spade_train.report.versions import rule, start_and_end

CHUNK_CHARS = 400_000
SOURCE_LIMIT = 65_536
SHOWN_SETTINGS = ("preset", "model", "setting", "ablation", "seed", "steps")


@dataclass(slots=True)
class Payload:
    """What goes into a page.

    Attributes:
        index: everything but the details of environments.
        chunks: details, in the order of the environments.
    """

    index: Row
    chunks: list[list[Row]]


def build_payload(records: RunRecords, *, embedder: Embedder = "tfidf") -> Payload:
    """Turn a run's records into what the page draws."""
    cards = build_cards(records)
    columns = metric_columns(records.metrics)
    accepted = [card for card in cards if card.accepted]
    vectors = None
    if len(accepted) >= 3:
        vectors = embed([card.source for card in accepted], embedder)
    places = None if vectors is None else project(vectors)
    chunks, homes = _chunks(cards)
    paired = records.config.get("seed_pairing", "paired") == "paired"
    index = {
        "name": records.path.resolve().name,
        "settings": {k: records.config[k] for k in SHOWN_SETTINGS if k in records.config},
        "finished": records.finished,
        "stepsDone": records.steps_done,
        "headline": headline(columns),
        "figures": figures(columns),
        "points": points(columns, cards, paired=paired),
        "pairs": start_and_end(cards),
        "pairRule": rule(cards),
        "duel": duel(records, cards),
        "steps": [row["step"] for row in records.metrics],
        "metrics": columns,
        "charts": main_charts(columns),
        "others": other_metrics(columns),
        "pools": pool_table(cards, vectors),
        "levers": lever_series(cards),
        "memory": memory_table(cards),
        "skills": skill_table(cards),
        "funnel": _funnel(records.designs),
        "security": _security(records.designs),
        "cost": cost_table(records.metrics),
        "tiers": _tiers(accepted),
        "envs": _columns(cards, places, homes),
        "codes": _codes(records.designs),
        "embedder": embedder if places is not None else "none",
        "config": records.config_text,
        "problems": records.problems,
    }
    return Payload(index, chunks)


def _details(card: Card) -> Row:
    design = card.design
    source = card.source
    hint = str(design.get("hint") or "")
    shown = [shown_episode(e, hint) for e in card.played.kept] if card.played else []
    details: Row = {
        "source": source[:SOURCE_LIMIT],
        "hint": hint,
        "findings": design.get("findings") or [],
        "document": design.get("document_id") or "",
        "raw": "" if source else str(design.get("raw_text_if_no_code") or "")[:SOURCE_LIMIT],
        "parents": card.parents,
        "children": card.children[:200],
        "levers": card.levers,
        "episodes": shown,
    }
    if card.played:
        details["byStep"] = [[s, p, w] for s, (p, w) in sorted(card.played.by_step.items())]
        details["faults"] = card.played.faults
        details["rewards"] = sorted(card.played.rewards)[:20]
    return details


def _chunks(cards: Sequence[Card]) -> tuple[list[list[Row]], list[int]]:
    """Return details in chunks of bounded size, and the chunk in which each card lies."""
    chunks: list[list[Row]] = [[]]
    homes: list[int] = []
    size = 0
    for card in cards:
        details = _details(card)
        length = len(json.dumps(details))
        if chunks[-1] and size + length > CHUNK_CHARS:
            chunks.append([])
            size = 0
        chunks[-1].append(details)
        size += length
        homes.append(len(chunks) - 1)
    return chunks, homes


def _columns(cards: Sequence[Card], places: Any | None, homes: list[int]) -> Row:
    """Return the cards as columns: a tenth of the size of as many objects."""
    skills = sorted({str(card.design.get("skill") or "") for card in cards})
    number = {skill: i for i, skill in enumerate(skills)}
    place = iter(() if places is None else places.tolist())
    rows: list[tuple[Any, ...]] = []
    for card in cards:
        x, y = next(place, (None, None)) if card.accepted else (None, None)
        played = card.played
        regret = played.regret if played else None
        rows.append(
            (
                str(card.design.get("title") or ""),
                str(card.design.get("sha256") or "")[:8],
                number[str(card.design.get("skill") or "")],
                1 if card.design.get("kind") == "tool_use" else 0,
                card.step,
                int(card.design.get("slot") or 0),
                int(card.design.get("try") or 0),
                stopping_code(card.design) or "",
                rounded(card.win_rate),
                rounded(played.hinted_win_rate) if played else None,
                rounded(regret.value) if regret else None,
                rounded(regret.standard_error) if regret else None,
                played.plays if played else 0,
                rounded(x),
                rounded(y),
            )
        )
    names = (
        "title sha skill tool step slot try stop win hinted regret se plays x y".split()  # noqa: SIM905
    )
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return {**columns, "chunk": homes, "skills": skills}


def _funnel(designs: Sequence[Row]) -> Row:
    funnel = acceptance_funnel(designs)
    return {
        "tries": funnel.tries,
        "withCode": funnel.with_code,
        "accepted": funnel.accepted,
        "byCode": funnel.by_code.most_common(),
        "byTry": [[n + 1, *funnel.tries_by_number[n]] for n in sorted(funnel.tries_by_number)],
    }


def _security(designs: Sequence[Row]) -> Row:
    table = security_table(designs)
    codes = sorted({code for row in table.values() for code in row})
    return {
        "codes": codes,
        "rows": [[step, *[table[step].get(code, 0) for code in codes]] for step in sorted(table)],
    }


def _tiers(accepted: Sequence[Card]) -> Row:
    played = [card.played for card in accepted if card.played and card.played.rewards]
    if not played:
        return {}
    graded = sum(p.between_rewards > 0 for p in played)
    return {
        "played": len(played),
        "graded": rounded(graded / len(played)),
        "mean": rounded(sum(len(p.rewards) for p in played) / len(played)),
    }


def _codes(designs: Sequence[Row]) -> dict[str, str]:
    """Return in a clause what each code that occurs in the run means."""
    return dict(_meanings(designs))


def _meanings(designs: Sequence[Row]) -> Iterator[tuple[str, str]]:
    seen = {str(f.get("code")) for d in designs for f in d.get("findings") or ()}
    for code in sorted(seen):
        if code in CODES:
            yield code, CODES[code].title
    yield NO_CODE, "the answer holds no complete code block"
    yield OTHER_KIND, "sound, but of a kind that was not asked for"
