"""One environment played twice on one seed, without its hint and with it, and what came later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from spade_train.report.cards import Card, shown_episode
from spade_train.report.phases import third_of
from spade_train.report.records import Row, RunRecords, rounded

_GOOD_LENGTH = range(2, 7)


def duel(records: RunRecords, cards: Sequence[Card]) -> Row | None:
    """Return one environment's pair of plays, turn by turn, with the rule by which it was chosen.

    The pair is one in which the hint turned a loss into a win, from the middle third of the run, in
    an environment whose hint helps over all its seeds (regret above its standard error), with two
    to six turns, as near to the middle of the run as there is one. Where there is none, the wishes
    are given up from the last to the first, and the rule says what is shown instead.
    """
    pairs = list(_pairs(cards))
    if not pairs:
        return None
    steps = sorted({card.step for card in cards})
    middle = steps[len(steps) // 2]

    def wishes(pair: _Pair) -> tuple[Any, ...]:
        index, without, with_hint = pair
        card = cards[index]
        return (
            bool(without.get("fault") or with_hint.get("fault")),
            not _flipped(without, with_hint),
            third_of(card.step, steps) != 1,
            not _helped(card),
            len(with_hint.get("rewards") or ()) not in _GOOD_LENGTH,
            abs(card.step - middle),
            index,
            without["seed"],
        )

    index, without, with_hint = min(pairs, key=wishes)
    card = cards[index]
    hint = str(card.design["hint"])
    regret = card.played.regret if card.played else None
    return {
        "env": index,
        "title": card.design.get("title") or "untitled",
        "step": card.step,
        "hint": hint,
        "seed": without["seed"],
        "regret": rounded(card.regret),
        "se": rounded(regret.standard_error) if regret else None,
        "rule": _rule(cards[index], without, with_hint, _where(card.step, steps)),
        "without": shown_episode(without, hint),
        "with": shown_episode(with_hint, hint),
        # Two pools have no three thirds.
        "later": _later(records, cards, index, steps) if len(steps) > 2 else None,
    }


_Pair = tuple[int, Row, Row]


def _pairs(cards: Sequence[Card]) -> Iterator[_Pair]:
    """Yield each kept pair of plays on one seed, with the place of its card."""
    for index, card in enumerate(cards):
        if not card.accepted or card.played is None or not card.design.get("hint"):
            continue
        by_seed: dict[Any, dict[str, Row]] = {}
        for episode in card.played.kept:
            by_seed.setdefault(episode["seed"], {})[episode["arm"]] = dict(episode)
        for arms in by_seed.values():
            if "hinted" in arms and "unhinted" in arms:
                yield index, arms["unhinted"], arms["hinted"]


def _flipped(without: Row, with_hint: Row) -> bool:
    return bool(with_hint.get("solved")) and not without.get("solved")


def _helped(card: Card) -> bool:
    regret = card.played.regret if card.played else None
    if regret is None or regret.value is None:
        return False
    return regret.value > (regret.standard_error or 0.0)


def _where(step: int, steps: Sequence[int]) -> str:
    if len(steps) < 3:
        return "of the run"
    if third_of(step, steps) == 1:
        return "of the middle third of the run"
    return "of the run (its middle third has none)"


def _rule(card: Card, without: Row, with_hint: Row, where: str) -> str:
    if without.get("fault") or with_hint.get("fault"):
        return "Every pair of plays that was kept has a fault in it; this is one of them."
    if not _flipped(without, with_hint):
        return (
            "No pair of plays that was kept shows a hint that turned a loss into a win; this is "
            "the pair nearest to the middle of the run."
        )
    means = (
        " in an environment whose hint helps over all its seeds"
        if _helped(card)
        else ", though over all its seeds the hint did not measurably help"
    )
    return (
        f"Chosen by rule: of the pairs {where} in which the hint turned a loss into a win{means}, "
        "the one nearest to the middle of the run; pairs of two to six turns come first."
    )


def _later(
    records: RunRecords, cards: Sequence[Card], index: int, steps: Sequence[int]
) -> Row | None:
    """Return how the same operation was played without a hint, by thirds, and a late win of it.

    An environment outside the embedded policy's world tells no operation: its skill stands in.
    """
    rule = cards[index].rule
    kin = [
        place
        for place, card in enumerate(cards)
        if card.played and card.accepted and _kin(card) == _kin(cards[index])
    ]
    thirds = [[0, 0], [0, 0], [0, 0]]
    for place in kin:
        played = cards[place].played
        if played:
            third = thirds[third_of(cards[place].step, steps)]
            third[0] += played.wins
            third[1] += played.plays
    found: Row = {
        "what": "operation" if rule else "skill",
        "name": rule.operation if rule else str(cards[index].design.get("skill") or ""),
        "thirds": thirds,
    }
    late = [i for i in kin if third_of(cards[i].step, steps) == 2 and cards[i].step != steps[0]]
    for place in sorted(late, key=lambda i: (_family(cards[i]) != _family(cards[index]), -i)):
        episode = _win(records, cards[place])
        if episode is not None:
            card = cards[place]
            return found | {
                "env": place,
                "title": card.design.get("title") or "untitled",
                "win": rounded(card.win_rate),
                "play": shown_episode(episode),
            }
    return found


def _kin(card: Card) -> tuple[str, str]:
    if card.rule is not None:
        return "operation", card.rule.operation
    return "skill", str(card.design.get("skill") or "")


def _family(card: Card) -> str:
    return card.rule.family if card.rule else ""


def _win(records: RunRecords, card: Card) -> Row | None:
    """Return the environment's first solved play without a hint, from its last step with one."""
    won = [step for step, (_, wins) in card.played.by_step.items() if wins] if card.played else []
    name = f"{card.step:06d}-{int(card.design.get('slot') or 0):03d}"
    for _, episodes in records.episodes(only=max(won)) if won else ():
        for episode in episodes:
            same = episode["design"] == card.design.get("sha256")
            same = same and episode.get("name") in (None, "", name)
            counts = episode["arm"] != "hinted" and not episode.get("fault")
            if same and counts and episode.get("solved"):
                return episode
    return None
