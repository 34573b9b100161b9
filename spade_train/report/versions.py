"""An early and a late design of the same skill, side by side, with what differs marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

from spade_train.report.cards import Card
from spade_train.report.phases import QUARTER
from spade_train.report.records import Row, rounded

MAX_PAIRS = 8
# Two sources that share fewer lines differ all over: marks would say nothing.
LEAST_COMMON = 0.25
_ALIKE = 0.6
_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)
Spans = dict[int, list[list[int]]]

RULE = (
    "Chosen by rule: the accepted designs of a skill from {}, and those from the last, are put in "
    "order by how often they were won; shown is the one in the middle of each. Of several with "
    "that win rate it is the earliest, and the latest."
)


def rule(cards: Sequence[Card]) -> str:
    """Return how the pairs of `start_and_end` are chosen, in a sentence."""
    pools = len(_played_steps(cards))
    return RULE.format(
        "the run’s first pool" if _width(pools) == 1 else "the first quarter of the run’s pools"
    )


def start_and_end(cards: Sequence[Card]) -> list[Row]:
    """Return pairs of designs, an early one beside a late one, one pair a skill.

    `rule` tells how they are chosen; skills with most designs in the two quarters come first.
    """
    played = [i for i, card in enumerate(cards) if card.accepted and card.win_rate is not None]
    steps = _played_steps(cards)
    if len(steps) < 2:
        return []
    width = _width(len(steps))
    parts = [
        [i for i in played if cards[i].step in set(s)] for s in (steps[:width], steps[-width:])
    ]
    pairs = []
    for skill in sorted({str(cards[i].design.get("skill") or "") for i in played}):
        early, late = ([i for i in part if cards[i].design.get("skill") == skill] for part in parts)
        if early and late:
            pairs.append((len(early) + len(late), skill, early, late))
    pairs.sort(key=lambda pair: (-pair[0], pair[1]))
    return [
        _pair(cards, skill, _middle(cards, early, late=False), _middle(cards, late, late=True))
        | {"of": [len(early), len(late)]}
        for _, skill, early, late in pairs[:MAX_PAIRS]
    ]


def _played_steps(cards: Sequence[Card]) -> list[int]:
    return sorted({card.step for card in cards if card.accepted and card.win_rate is not None})


def _width(pools: int) -> int:
    """Return how many pools stand for the start and for the end."""
    return max(1, int(pools * QUARTER))


def _middle(cards: Sequence[Card], places: Sequence[int], *, late: bool) -> int:
    """Return the card of the median win rate: of equal ones the earliest, or the latest."""
    ordered = sorted(places, key=lambda i: cards[i].win_rate or 0.0)
    rate = cards[ordered[(len(ordered) - 1) // 2]].win_rate
    equal = [i for i in places if cards[i].win_rate == rate]
    return equal[-1] if late else equal[0]


def _pair(cards: Sequence[Card], skill: str, early: int, late: int) -> Row:
    rows, changed = compare(cards[early].source, cards[late].source)
    return {
        "skill": skill,
        "start": _design(cards, early, changed[0]),
        "end": _design(cards, late, changed[1]),
        "rows": rows,
    }


def _design(cards: Sequence[Card], index: int, changed: Spans) -> Row:
    card = cards[index]
    played = card.played
    regret = played.regret if played else None
    return {
        "env": index,
        "title": card.design.get("title") or "untitled",
        "step": card.step,
        "source": card.source,
        "hint": card.design.get("hint") or "",
        "levers": card.levers,
        "win": rounded(card.win_rate),
        "hinted": rounded(played.hinted_win_rate) if played else None,
        "plays": played.plays if played else 0,
        "regret": rounded(card.regret),
        "se": rounded(regret.standard_error) if regret else None,
        "changed": changed,
    }


def compare(early: str, late: str) -> tuple[list[list[int | None]], tuple[Spans, Spans]]:
    r"""Set two sources side by side.

    Returns:
        Rows of line numbers from 1, one of each source, None where a side has no such line; and for
        each side the lines that differ, with the stretches `[from, to]` that do where the line has
        a like one beside it. Nothing is marked, and there are no rows, where the two share hardly
        a line.

    >>> rows, changed = compare("a = 1\nb = 2\n", "a = 1\nb = 3\nc = 4\n")
    >>> rows, changed
    ([[1, 1], [2, 2], [None, 3]], ({2: [[4, 5]]}, {2: [[4, 5]], 3: []}))
    """
    sides = (_lines(early), _lines(late))
    matcher = SequenceMatcher(None, *sides, autojunk=False)
    if matcher.ratio() < LEAST_COMMON:
        return [], ({}, {})
    rows: list[list[int | None]] = []
    marks: tuple[Spans, Spans] = ({}, {})
    for kind, a, a_end, b, b_end in matcher.get_opcodes():
        for offset in range(max(a_end - a, b_end - b)):
            pair = [
                start + offset if start + offset < end else None
                for start, end in ((a, a_end), (b, b_end))
            ]
            rows.append([None if place is None else place + 1 for place in pair])
            if kind != "equal":
                _mark(sides, pair, marks)
    return rows, marks


def _mark(
    sides: tuple[list[str], list[str]], pair: Sequence[int | None], marks: tuple[Spans, Spans]
) -> None:
    lines: list[Any] = [None if place is None else sides[s][place] for s, place in enumerate(pair)]
    stretches: list[list[list[int]]] = [[], []]
    if None not in lines:
        stretches = _stretches(*lines)
    for side, place in enumerate(pair):
        if place is not None:
            marks[side][place + 1] = stretches[side]


def _stretches(early: str, late: str) -> list[list[list[int]]]:
    """Return what differs within two lines, word by word; nothing where they are hardly alike."""
    words = (_WORD.findall(early), _WORD.findall(late))
    matcher = SequenceMatcher(None, *words, autojunk=False)
    found: list[list[list[int]]] = [[], []]
    if matcher.ratio() < _ALIKE:
        return found
    for kind, a, a_end, b, b_end in matcher.get_opcodes():
        for side, (start, end) in enumerate(((a, a_end), (b, b_end))):
            if kind != "equal" and end > start:
                before = _units(words[side][:start])
                found[side].append([before, before + _units(words[side][start:end])])
    return found


def _lines(source: str) -> list[str]:
    """Return the lines as the page counts them."""
    return re.sub(r"\r\n?", "\n", source).rstrip("\n").split("\n")


def _units(words: Sequence[str]) -> int:
    """Return the length in UTF-16 units, in which a browser counts."""
    return len("".join(words).encode("utf-16-le", "surrogatepass")) // 2
