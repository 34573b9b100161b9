"""The words of the small world that the embedded policy lives in.

Every environment of the world asks about a made-up *operation* (`twist`, `ebb`, ...). What an
operation does is a convention of the designer: its sources always give `surge` the rule "two steps
forward". The agent is never told the convention. Its warm start hints at words and rules paired at
random, so that it follows a hint, and leaves it an inkling of the words' own meaning; to learn what
they mean is left to self-play.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OpKind = Literal["step", "order", "sum"]

STEP_WORDS = ("zero", "one", "two", "three", "four", "five")


@dataclass(frozen=True, slots=True)
class Op:
    """One operation word and the rule that the designer's sources give it.

    Attributes:
        word: how observations name it.
        kind: `step` goes round an ordered circle; `order` picks by rank; `sum` adds two digits.
        amount: steps forward (negative: back), or the rank from the small end (0 smallest,
            -1 largest).
    """

    word: str
    kind: OpKind
    amount: int = 0


STEP_OPS = (
    Op("twist", "step", 1),
    Op("flick", "step", -1),
    Op("surge", "step", 2),
    Op("ebb", "step", -2),
    Op("leap", "step", 3),
    Op("duck", "step", -3),
)
ORDER_OPS = (
    Op("crest", "order", -1),
    Op("root", "order", 0),
    Op("crown", "order", -2),
    Op("stem", "order", 1),
)
SUM_OPS = (Op("blend", "sum"),)
OPS = STEP_OPS + ORDER_OPS + SUM_OPS
BY_WORD = {op.word: op for op in OPS}


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Nouns that give an environment its setting. A document that holds one lends it to the design.
THEMES = _words(
    "river harbour garden market bridge tower forest mill island castle village station "
    "kitchen library workshop museum temple theatre hospital school farm mine canal desert "
    "mountain valley lake ocean meadow orchard cave square ship train engine clock machine "
    "planet star cell plant animal bird music paint number energy water street shelf cottage "
    "lamp flower bee pendulum wind cliff seesaw dough bat volcano heart crate mirror bicycle house "
    "dinner laundry guitar bread hotel bill screw shop apple hall stock calendar queue cache "
    "account index flag ticket program desk branch tracker city backup"
)
# Settings of the held-out environments: in the warm start only where play is told the rule.
NEW_THEMES = _words("glacier bakery lantern comet loom quarry")

POINTS = _words("north northeast east southeast south southwest west northwest")
COLOURS = _words("red orange yellow green blue indigo violet")
LETTERS = tuple("abcdefghij")
DIGITS = tuple(str(digit) for digit in range(10))


def rule_text(op: Op) -> str:
    """Return the core of a hint: the rule in words that never occur among answers.

    >>> rule_text(BY_WORD["ebb"]), rule_text(BY_WORD["crown"])
    ('two steps back', 'the second largest')
    """
    if op.kind == "step":
        return _steps(op.amount)
    if op.kind == "sum":
        return "the sum without tens"
    return {
        -1: "the largest",
        0: "the smallest",
        -2: "the second largest",
        1: "the second smallest",
    }[op.amount]


def _steps(amount: int) -> str:
    noun = "step" if abs(amount) == 1 else "steps"
    return f"{STEP_WORDS[abs(amount)]} {noun} {'forward' if amount > 0 else 'back'}"
