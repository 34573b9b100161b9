"""The answer in the first observation (SPD702): a fixed extraction finds it without thinking.

An extraction is learned on half of the seeds and tried on the others. It counts only where it does
better than picking among the answers on display: an option in a listing is no leak.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spade_runtime.validation.actions import fill, has_placeholder, quoted
from spade_runtime.validation.bench import Bench
from spade_runtime.validation.blind import SCREEN, SEEDS, wilson_lower
from spade_runtime.validation.games import Play, always
from spade_runtime.validation.text import shown

_TOKEN = re.compile(r"[^\W_]+", re.UNICODE)
_PART = re.compile(r"[^\W_]+|\s+|[\W_]", re.UNICODE)
_LABEL_LENGTHS = (24, 12, 6)
_RULES = 6
_Z = 3.0
"""Stricter than usual: the best of many extractions is judged, so some do well by luck."""
_SHARE = 0.25
_LABELS = 8

Extraction = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Case:
    """One seed: what is shown, and the part of the winning action that varies.

    Attributes:
        text: the first observation.
        answer: the varying part, in lower case.
    """

    text: str
    answer: str


def varying_parts(actions: Sequence[str]) -> list[str]:
    """What is left of actions without the words that they begin with alike.

    >>> varying_parts(["count 12", "count 7"]), varying_parts(["12", "7"])
    (['12', '7'], ['12', '7'])
    """
    split = [action.lower().split() for action in actions]
    shortest = min((len(parts) for parts in split), default=0)
    same = 0
    while same < shortest - 1 and len({parts[same] for parts in split}) == 1:
        same += 1
    return [" ".join(parts[same:]) for parts in split]


def _shape(answer: str) -> str:
    """A pattern of what looks like an answer: its words and numbers, its marks kept."""
    parts = []
    for found in _PART.finditer(answer):
        text = found.group()
        if text.isdigit():
            parts.append(r"\d+")
        elif text[0].isalnum():
            parts.append(r"[^\W_]+")
        else:
            parts.append(r"\s+" if text.isspace() else re.escape(text))
    return "".join(parts)


def _after(label: str, shape: str) -> Extraction:
    """Takes what follows a label and looks like an answer."""
    pattern = re.compile(shape)

    def extract(text: str) -> str | None:
        place = text.find(label)
        while place >= 0:
            found = pattern.match(text, place + len(label))
            if found:
                return found.group()
            place = text.find(label, place + 1)
        return None

    return extract


def _at(place: int, width: int) -> Extraction:
    """Takes the tokens at a position, from the end where it is negative."""

    def extract(text: str) -> str | None:
        found = _TOKEN.findall(text)
        if not -len(found) <= place < len(found):
            return None
        start = place % len(found)
        return " ".join(found[start : start + width])

    return extract


def _rules(case: Case) -> list[tuple[str, Extraction]]:
    """Every extraction that finds the answer of one case."""
    rules: list[tuple[str, Extraction]] = []
    wanted = _TOKEN.findall(case.answer)
    if not wanted:
        return rules
    shape = _shape(case.answer)
    for hit in re.finditer(rf"(?<![^\W_]){re.escape(case.answer)}(?![^\W_])", case.text):
        for length in _LABEL_LENGTHS:
            label = case.text[max(0, hit.start() - length) : hit.start()]
            if label.strip() and len(label) >= min(length, hit.start()):
                rules.append((f"the text after {shown(label)}", _after(label, shape)))
    tokens = _TOKEN.findall(case.text)
    width = len(wanted)
    for place in range(len(tokens) - width + 1):
        if tokens[place : place + width] == wanted:
            rules.append((f"word {place + 1}", _at(place, width)))
            back = place - len(tokens)
            rules.append((f"word {-back} from the end", _at(back, width)))
    return rules


def find_leak(cases: Sequence[Case], share: float = _SHARE) -> tuple[str, float] | None:
    """The best extraction, where it gives the answer on over `share` of the cases kept back.

    Returns:
        What it does and on which share of the test cases it was right, or None.
    """
    train, test = cases[::2], cases[1::2]
    if len(test) < 4:
        return None
    votes: Counter[str] = Counter()
    made: dict[str, Extraction] = {}
    for case in train:
        for name, rule in _rules(case):
            votes[name] += 1
            made[name] = rule
    constant = Counter(case.answer for case in train).most_common(1)[0][0]
    guessed = sum(case.answer == constant for case in test) / len(test)
    chance = _chance(cases, test)
    best: tuple[str, float] | None = None
    for name, _ in votes.most_common(_RULES):
        if len({_plain(made[name](case.text)) for case in cases}) == 1:
            continue  # the same word in every text is a command or a part of the question
        right = sum(_plain(made[name](case.text)) == _plain(case.answer) for case in test)
        rate = right / len(test)
        # An extraction must beat the share, the best constant and a pick among what is on show.
        if wilson_lower(right, len(test), _Z) > max(guessed, chance) and rate > share:
            best = max(best or (name, 0.0), (name, rate), key=lambda row: row[1])
    return best


def _plain(text: str | None) -> str | None:
    return text if text is None else " ".join(_TOKEN.findall(text.lower()))


def _chance(cases: Sequence[Case], test: Sequence[Case]) -> float:
    """How often a pick among the answers on display is right.

    Two ways to say what is on display: the answers that a text shows, and the places (from the end)
    at which answers were found. A clue of the same kind as the answers is no option, so the first
    alone would hold a listing of three to a quarter.
    """
    answers = {_plain(case.answer) for case in cases}
    total = 0.0
    for case in test:
        options = {token for token in _TOKEN.findall(case.text.lower()) if token in answers}
        if len(options) > 1 and _plain(case.answer) in options:
            total += 1 / len(options)
    places: Counter[int] = Counter()
    for case in cases:
        tokens = _TOKEN.findall(case.text.lower())
        places.update(
            len(tokens) - place for place, token in enumerate(tokens) if token == case.answer
        )
    most = max(places.values(), default=0)
    common = [place for place, seen in places.items() if 2 * seen >= most]
    listed = 1 / len(common) if len(common) > 1 else 0.0
    return max(total / len(test), listed)


def audit_leak(bench: Bench) -> str:
    """Look for the winning action in the first observations."""
    won = [play for play in bench.replays if isinstance(play, Play) and play.solved]
    if not won:
        return _try_labels(bench)
    actions = [play.actions[-1] for play in won]
    parts = varying_parts(actions)
    cases = [
        Case(str(getattr(play.start, "observation", "")).lower(), part)
        for play, part in zip(won, parts, strict=True)
    ]
    if len({case.answer for case in cases}) < 2:
        return "no answer to look for"
    leak = find_leak(cases)
    if leak is not None:
        name, rate = leak
        bench.found(
            "SPD702",
            f"the first observation must not show the answer; {name} is the winning answer on "
            f"{rate:.0%} of the seeds that were kept back",
            seed=won[0].seed,
            action=actions[0],
        )
    return f"{len(cases)} first observations"


def labels_of(texts: Sequence[str]) -> list[str]:
    """Labels that stand in every text before something that varies.

    >>> labels_of(["box=17 of 40. Which?", "box=23 of 40. Which?"])
    ['box=']
    """
    found: list[str] = []
    for hit in _TOKEN.finditer(texts[0]):
        label = texts[0][max(0, hit.start() - _LABEL_LENGTHS[1]) : hit.start()]
        label = label[label.rfind("\n") + 1 :].lstrip()
        if len(label.strip()) < 2 or not all(label in text for text in texts):
            continue
        extract = _after(label, r"[^\W_]+")
        if len({extract(text) for text in texts}) > len(texts) // 2:
            found.append(label)
    return list(dict.fromkeys(found))[:_LABELS]


def _try_labels(bench: Bench) -> str:
    """Without a solution: say what stands after each label, and see whether that wins."""
    seeds = bench.stream.seeds("labels", SEEDS)
    table = bench.table(bench.child("main"))
    texts = dict(zip(seeds, table.openings(seeds), strict=True))
    screen = seeds[:SCREEN]
    for label in labels_of([texts[seed] for seed in screen]):
        extract = _after(label, r"[^\W_]+")
        players = {
            seed: bench.worded(always(_placed(extract(text) or "", text)))
            for seed, text in texts.items()
        }
        plays = table.play(screen, [players[seed] for seed in screen], 1)
        if not any(play.solved for play in plays):
            continue
        rest = seeds[SCREEN:]
        plays += table.play(rest, [players[seed] for seed in rest], 1)
        won = sum(play.solved for play in plays)
        if wilson_lower(won, len(plays)) > _SHARE:
            bench.found(
                "SPD702",
                "the first observation must not show the answer; saying the text after "
                f"{shown(label)} wins on {won} of {len(plays)} seeds",
                seed=plays[0].seed,
            )
            break
    return f"labels of {len(seeds)} first observations"


def _placed(answer: str, text: str) -> str:
    """An answer in the last command that has a place for it, or bare."""
    holders = [command for command in quoted(text) if has_placeholder(command)]
    return fill(holders[-1], answer) if holders else answer
