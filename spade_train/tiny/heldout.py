"""Environments that the warm start never saw, on which the agent is measured.

Two parts. *Known families*: settings that are in no warm-start design, operations and levers spread
evenly. *New families*: other structures and wordings, more options, the same operations on other
things. The operations' words mean what the designer's convention says, since that is what self-play
can teach. None of these is ever trained on.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from string import Template

from spade_runtime.spec import Kind
from spade_train.tiny.families import FAMILIES, Design, hint, source
from spade_train.tiny.lexicon import BY_WORD, NEW_THEMES, STEP_OPS, Op, rule_text

SEED = 20260819
PER_FAMILY = 5


@dataclass(frozen=True, slots=True)
class Heldout:
    """One held-out environment.

    Attributes:
        name: unique in the set.
        family: its family.
        new_family: whether the warm start saw no environment of the family.
        kind: `game` or `tool_use`.
        skill: the skill that it claims.
        source: its code.
        hint: its hint.
    """

    name: str
    family: str
    new_family: bool
    kind: Kind
    skill: str
    source: str
    hint: str


def environments() -> list[Heldout]:
    """Return the held-out set: 60 environments, always the same ones."""
    rng = random.Random(SEED)
    return [*_known(rng), *_mixed(), *_relays(), *_ordered(), *_long(rng)]


def _known(rng: random.Random) -> list[Heldout]:
    found = []
    for family in FAMILIES:
        low, high = family.options
        for number in range(PER_FAMILY):
            design = Design(
                family=family,
                op=family.ops[number % len(family.ops)],
                theme=NEW_THEMES[number % len(NEW_THEMES)],
                skill=family.skills[number % len(family.skills)],
                rounds=(1, 2, 3, 2, 1)[number],
                options=(low, low + 1, low + 2, high, low + 3)[number],
                spare=number % 2 if family.kind == "tool_use" else 0,
                style=rng.getrandbits(30),
            ).within()
            found.append(_entry(design, hint(design, rng), number, new=False))
    return found


def _entry(design: Design, text: str, number: int, *, new: bool) -> Heldout:
    return Heldout(
        name=f"{design.family.name}-{number}",
        family=design.family.name,
        new_family=new,
        kind=design.family.kind,
        skill=design.skill,
        source=source(design),
        hint=text,
    )


_FRAME = '''\
class $cls(TextEnv):
    """$title"""

    skill = "$skill"
    max_turns = $rounds

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.texts, self.wants, self.given = [], [], []
$draw
        return self.texts[0], {}

    def listing(self, rng, pool, want):
        others = [item for item in pool if item != want]
        shown = [want] + rng.sample(others, $options - 1)
        rng.shuffle(shown)
        return " ".join(map(str, shown))

    def step(self, action):
        self.given.append(action.strip())
        done = len(self.given)
        if self.given == self.wants:
            return "Solved.", 1.0, True, False, {}
        hit = self.given[-1] == self.wants[done - 1]
        if done == len(self.wants):
            return "Over.", hit / (done + 1), True, False, {}
        return self.texts[done], hit / (len(self.wants) + 1), False, False, {}

    def solution(self):
        return list(self.wants)
'''

_MIXED = """\
        for word, amount in $pairs:
            clue = rng.randrange(10)
            want = (clue + amount) % 10
            self.texts.append(f"$lead {word} {clue}. Pick: {self.listing(rng, range(10), want)}")
            self.wants.append(str(want))"""

_RELAY = """\
        clue = rng.randrange(10)
        for turn in range($rounds):
            want = (clue + $amount) % 10
            named = f"$word {clue}" if turn == 0 else "$word"
            self.texts.append(f"$lead {named}. Pick: {self.listing(rng, range(10), want)}")
            self.wants.append(str(want))
            clue = want"""

_ORDERED = """\
        for _ in range($rounds):
            one, two = rng.sample("abcdefghij", 2)
            want = $choose(one, two)
            listed = self.listing(rng, "abcdefghij", want)
            self.texts.append(f"$lead $word {one} and {two}. Choose: {listed}")
            self.wants.append(want)"""


def _framed(
    number: int, family: str, skill: str, words: tuple[str, ...], draw: str, **slots: object
) -> Heldout:
    lead = ("The $theme", "In the $theme you", "Now the $theme")[number % 3]
    values = {
        "cls": f"{family.title()}Env",
        "skill": skill,
        "theme": NEW_THEMES[number % len(NEW_THEMES)],
        "title": f"The {NEW_THEMES[number % len(NEW_THEMES)]} {' '.join(words)}.",
        **{key: str(value) for key, value in slots.items()},
    }
    values["lead"] = Template(lead).substitute(values)
    values["draw"] = Template(draw).substitute(values)
    rules = " ".join(f"Here {word} means {rule_text(BY_WORD[word])}." for word in words)
    return Heldout(
        name=f"{family}-{number}",
        family=family,
        new_family=True,
        kind="game",
        skill=skill,
        source=Template(_FRAME).substitute(values),
        hint=rules,
    )


def _mixed() -> list[Heldout]:
    """Rounds that take turns between two operations: the hint has two rules."""
    pairs: list[tuple[Op, Op]] = [
        (STEP_OPS[number % 6], STEP_OPS[(number + 1 + number // 3) % 6]) for number in range(6)
    ]
    return [
        _framed(
            number,
            "mixed",
            "mathematical_reasoning",
            tuple(op.word for op in ops),
            _MIXED,
            pairs=[(op.word, op.amount) for op in ops],
            rounds=2,
            options=3 + number % 4,
        )
        for number, ops in enumerate(pairs)
    ]


def _relays() -> list[Heldout]:
    """Each round goes on from one's own last answer, which is not repeated."""
    return [
        _framed(
            number,
            "relay",
            "causal_inference",
            (op.word,),
            _RELAY,
            word=op.word,
            amount=op.amount,
            rounds=2,
            options=3 + number,
        )
        for number, op in enumerate(STEP_OPS[:5])
    ]


def _ordered() -> list[Heldout]:
    """The order operations on letters instead of digits."""
    return [
        _framed(
            number,
            "ordered",
            "logical_deduction",
            (word,),
            _ORDERED,
            word=word,
            choose=choose,
            rounds=2 + number % 2,
            options=4 + number,
        )
        for number, (word, choose) in enumerate([("crest", "max"), ("root", "min")] * 2)
    ]


def _long(rng: random.Random) -> list[Heldout]:
    """Known families with more options than any warm-start design has."""
    levers = [(1, 9), (2, 10), (3, 9), (4, 10), (5, 9)]
    found = []
    for number, (rounds, options) in enumerate(levers):
        family = FAMILIES[(0, 3)[number % 2]]
        op, theme = STEP_OPS[number], NEW_THEMES[number]
        design = Design(
            family, op, theme, family.skills[0], rounds, options, style=rng.getrandbits(30)
        )
        entry = _entry(design, hint(design, rng), number, new=True)
        found.append(
            Heldout(
                f"long-{number}", "long", True, entry.kind, entry.skill, entry.source, entry.hint
            )
        )
    return found
