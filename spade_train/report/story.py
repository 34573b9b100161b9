"""The story of a run for someone who never read the paper: a headline, two designs, one duel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import hypot
from statistics import median
from typing import Any

from spade_train.report.cards import Card, shown_episode
from spade_train.report.records import Row, rounded
from spade_train.report.series import ends, present

MAX_PAIRS = 4
_CANDIDATES = 24
_NORMAL = 1.96


def headline(columns: dict[str, list[Any]]) -> Row:
    """Return what the run shows, in one sentence, with its uncertainty in a second one."""
    held = _first_and_last(columns, "heldout/win_rate")
    if held:
        (first, last), errors = held
        change = last - first
        spread = _NORMAL * hypot(*errors) if None not in errors else None
        title = _verdict(first, last, spread)
        detail = f"A change of {100 * change:+.0f} points"
        if spread is not None:
            detail += f", ± {100 * spread:.0f} (95 % interval)"
        detail += ": the same environments and seeds, before training and at the end."
        return {"title": title, "detail": detail}
    own = ends(columns.get("agent/win_rate", []))
    if own:
        return {
            "title": f"The agent won {_percent(own[1])} of its plays at the end of this run",
            "detail": (
                f"It began at {_percent(own[0])}. Its environments changed on the way, so the two "
                "figures are not about the same tasks; this run measured no held-out environments."
            ),
        }
    once = present(columns.get("agent/win_rate", []))
    if once:
        return {
            "title": f"The agent won {_percent(once[0])} of its plays",
            "detail": "Only one step of this run had plays, so there is no change to speak of.",
        }
    if "step" in columns:
        return {
            "title": "In this run no environment was played",
            "detail": "The validator’s findings below say why designs were refused.",
        }
    return {
        "title": "This run has no finished step yet",
        "detail": "What was designed so far is shown below.",
    }


def _verdict(first: float, last: float, spread: float | None) -> str:
    if spread is not None and abs(last - first) <= spread:
        return (
            f"On environments it never saw, the agent wins {_percent(last)} of plays: "
            "no measurable change"
        )
    if last > first:
        return (
            f"On environments it never saw, the agent went from {_percent(first)} to "
            f"{_percent(last)} of plays won"
        )
    return (
        f"On environments it never saw, the agent fell from {_percent(first)} to "
        f"{_percent(last)} of plays won"
    )


def _percent(value: float) -> str:
    return f"{100 * value:.0f}\u00a0%"


def _first_and_last(
    columns: dict[str, list[Any]], key: str
) -> tuple[tuple[float, float], tuple[Any, Any]] | None:
    values = columns.get(key, [])
    places = [i for i, value in enumerate(values) if value is not None]
    if len(places) < 2:
        return None
    errors = columns.get(f"{key}_se", [None] * len(values))
    first, last = places[0], places[-1]
    return (values[first], values[last]), (errors[first], errors[last])


def figures(columns: dict[str, list[Any]]) -> list[Row]:
    """Return the key figures: first and last tenth of the run, or first and last measurement."""
    wanted = (
        ("heldout/win_rate", "Held-out win rate", "percent", "plays of unseen environments won"),
        ("agent/win_rate", "Win rate without hint", "percent", "in the designer's environments"),
        ("designer/regret", "Hint regret", "signed", "what a hint still adds to the return"),
        ("designer/band_share", "In the learnable band", "percent", "won in 20 to 80 % of plays"),
        ("designer/acceptance", "Designs accepted", "percent", "of the designer's tries"),
    )
    found = []
    for key, label, form, note in wanted:
        held = _first_and_last(columns, key) if key.startswith("heldout") else None
        pair = held[0] if held else ends(columns.get(key, []))
        if pair:
            error = held[1][1] if held else None
            if key == "designer/regret":
                error = (ends(columns.get("designer/regret_se", [])) or (None, None))[1]
            found.append(
                {
                    "label": label,
                    "first": rounded(pair[0]),
                    "last": rounded(pair[1]),
                    "se": rounded(error),
                    "form": form,
                    "note": note,
                }
            )
    return found


def start_and_end(cards: Sequence[Card]) -> list[Row]:
    """Return pairs of designs, an early one beside a late one, at most one pair a skill.

    A pair is typical (near the middle of its pool in win rate) and alike in form, so that what
    differs is what the designer learned.
    """
    played = [i for i, card in enumerate(cards) if card.accepted and card.win_rate is not None]
    if len(played) < 2:
        return []
    steps = sorted({cards[i].step for i in played})
    edge = max(1, round(len(steps) * 0.1))
    early = [i for i in played if cards[i].step in steps[:edge]]
    late = [i for i in played if cards[i].step in steps[-edge:]] if len(steps) > 1 else []
    pairs = []
    for skill in dict.fromkeys(cards[i].design.get("skill") for i in early):
        best = _most_telling(cards, _of(cards, early, skill), _of(cards, late, skill))
        if best is not None:
            pairs.append((best[0], str(skill), best[1], best[2]))
    pairs.sort(key=lambda pair: (-pair[0], pair[1]))
    return [
        {"skill": skill, "start": _design(cards, a), "end": _design(cards, b)}
        for _, skill, a, b in pairs[:MAX_PAIRS]
    ]


def _of(cards: Sequence[Card], indices: Sequence[int], skill: Any) -> list[int]:
    return [i for i in indices if cards[i].design.get("skill") == skill]


def _most_telling(
    cards: Sequence[Card], early: Sequence[int], late: Sequence[int]
) -> tuple[float, int, int] | None:
    if not early or not late:
        return None
    middles = [median(cards[i].win_rate or 0.0 for i in group) for group in (early, late)]
    near = [
        sorted(group, key=lambda i: (abs((cards[i].win_rate or 0.0) - middle), i))[:_CANDIDATES]
        for group, middle in zip((early, late), middles, strict=True)
    ]
    words = {i: set(re.findall(r"\w+", cards[i].source)) for i in (*near[0], *near[1])}
    best: tuple[float, int, int] | None = None
    for a in near[0]:
        for b in near[1]:
            alike = len(words[a] & words[b]) / max(1, len(words[a] | words[b]))
            off = sum(
                abs((cards[i].win_rate or 0.0) - m) for i, m in zip((a, b), middles, strict=True)
            )
            moved = 0.2 * (cards[a].levers != cards[b].levers)
            score = alike - off + moved
            if best is None or score > best[0]:
                best = (score, a, b)
    return best


def _design(cards: Sequence[Card], index: int) -> Row:
    card = cards[index]
    return {
        "env": index,
        "title": card.design.get("title") or "untitled",
        "step": card.step,
        "source": card.source,
        "levers": card.levers,
        "win": rounded(card.win_rate),
        "regret": rounded(card.regret),
    }


def duel(cards: Sequence[Card]) -> Row | None:
    """Return one environment played with and without its hint on the same seed.

    The most telling one: lost without the hint and won with it, in a short episode of an
    environment in which the hint adds much.
    """
    best: tuple[tuple[float, ...], int, Row, Row] | None = None
    for index, card in enumerate(cards):
        if not card.accepted or card.played is None or not card.design.get("hint"):
            continue
        by_seed: dict[Any, dict[str, Row]] = {}
        for episode in card.played.kept:
            by_seed.setdefault(episode["seed"], {})[episode["arm"]] = dict(episode)
        for arms in by_seed.values():
            if "hinted" in arms and "unhinted" in arms:
                score = _telling(card, arms["unhinted"], arms["hinted"])
                if best is None or score > best[0]:
                    best = (score, index, arms["unhinted"], arms["hinted"])
    if best is None:
        return None
    _, index, without, with_hint = best
    card = cards[index]
    return {
        "env": index,
        "title": card.design.get("title") or "untitled",
        "hint": card.design["hint"],
        "seed": without["seed"],
        "regret": rounded(card.regret),
        "without": shown_episode(without),
        "with": shown_episode(with_hint),
    }


def _telling(card: Card, without: Row, with_hint: Row) -> tuple[float, ...]:
    turns = len(with_hint.get("rewards") or ())
    clean = not without.get("fault") and not with_hint.get("fault")
    flipped = bool(with_hint.get("solved")) and not without.get("solved")
    return (clean, flipped, 2 <= turns <= 6, round(card.regret or 0.0, 2), -turns, -card.step)
