"""Families of small environments: what the embedded policy's designer has learned to write.

A `Design` is one environment as a choice of family, operation, setting and levers; `source` turns
it into a Python class in the contract. The levers grade an environment: more rounds, more options,
a rule further out of reach.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace
from string import Template

from spade_runtime.spec import Kind
from spade_runtime.taxonomy import TOOL_SKILLS
from spade_train.tiny.families import blocks
from spade_train.tiny.lexicon import ORDER_OPS, STEP_OPS, SUM_OPS, Op, rule_text

DIGIT_POOL = "range(10)"


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of environment.

    Attributes:
        name: the word used in tables.
        cls: the class's name.
        kind: `game` or `tool_use`.
        skills: what it may be asked for as.
        ops: the operations that make sense in it.
        body: the blocks of its task, with `pool` the circle's expression in them.
        pool: the expression that distractors come from; empty where the task shows its own.
        lead: how an observation names the clue.
        rounds: fewest and most rounds.
        options: fewest and most options.
    """

    name: str
    cls: str
    kind: Kind
    skills: tuple[str, ...]
    ops: tuple[Op, ...]
    body: blocks.Variants
    pool: str
    lead: str = " {clue}"
    rounds: tuple[int, int] = (1, 8)
    options: tuple[int, int] = (4, 8)


FAMILIES: tuple[Family, ...] = (
    Family(
        "shift",
        "ShiftEnv",
        "game",
        ("mathematical_reasoning",),
        STEP_OPS,
        blocks.SHIFT,
        DIGIT_POOL,
    ),
    Family(
        "pair",
        "PairEnv",
        "game",
        ("logical_deduction",),
        ORDER_OPS[:2] + SUM_OPS,
        blocks.PAIR,
        DIGIT_POOL,
        lead=" {one} and {two}",
    ),
    Family(
        "compass",
        "CompassEnv",
        "game",
        ("spatial_reasoning",),
        STEP_OPS,
        blocks.COMPASS,
        "self.points",
    ),
    Family(
        "letters",
        "LettersEnv",
        "game",
        ("pattern_recognition",),
        STEP_OPS,
        blocks.LETTERS,
        "self.letters",
    ),
    Family("pick", "PickEnv", "game", ("optimization",), ORDER_OPS, blocks.PICK, "", lead=""),
    Family(
        "wheel",
        "WheelEnv",
        "game",
        ("causal_inference",),
        STEP_OPS,
        blocks.WHEEL,
        "self.colours",
        rounds=(1, 6),  # after seven it stands where it began, and the clue is the answer
        options=(4, 7),
    ),
    Family(
        "desk",
        "DeskEnv",
        "tool_use",
        TOOL_SKILLS[::2],
        STEP_OPS,
        blocks.DESK,
        DIGIT_POOL,
        rounds=(3, 5),  # the contract asks for three to five instructions
    ),
    Family(
        "gate",
        "GateEnv",
        "tool_use",
        TOOL_SKILLS[1::2],
        STEP_OPS,
        blocks.GATE,
        "self.points",
        rounds=(3, 5),  # the contract asks for three to five instructions
    ),
)
BY_NAME = {family.name: family for family in FAMILIES}
BY_SKILL = {skill: family for family in FAMILIES for skill in family.skills}


@dataclass(frozen=True, slots=True)
class Design:
    """One environment before it is written.

    Attributes:
        family: its family.
        op: the operation's word and rule.
        theme: the setting.
        skill: the skill it claims.
        rounds: answers that an episode asks for.
        options: how many options are shown.
        spare: messages beyond one a round, for tool use.
        style: seed of the variants of its blocks.
    """

    family: Family
    op: Op
    theme: str
    skill: str
    rounds: int
    options: int
    spare: int = 0
    style: int = 0

    @property
    def title(self) -> str:
        """The docstring's line, which memory shows to later designs."""
        noun = "orders" if self.family.kind == "tool_use" else "rounds"
        return f"The {self.theme} {self.op.word}: {self.rounds} {noun}, {self.options} options."

    def within(self) -> Design:
        """Clip the levers to what the family allows and the validator's audit leaves.

        In a single round, one of two shown clues is right too often; and of many options the
        smallest is too often the smallest there is.
        """
        low, high = self.family.rounds
        if self.family.name == "pair" and self.op.kind == "order":
            low = 2
        rounds = min(max(self.rounds, low), high)
        low, high = self.family.options
        if self.family.name == "pick" and rounds == 1:
            high = 6
        return replace(self, rounds=rounds, options=min(max(self.options, low), high))


def source(design: Design) -> str:
    """Write the environment's source; the same design gives the same text."""
    rng = random.Random(design.style)
    family = design.family
    tool = family.kind == "tool_use"
    parts = [rng.choice(blocks.DESK_HEAD if tool else blocks.HEAD)]
    if not tool and family.body is not blocks.WHEEL:
        parts.append(rng.choice(blocks.RESET))
    # A list of class attributes at the head of a body belongs above the first method.
    body = rng.choice(family.body)
    attributes, body = _attributes(body)
    parts.insert(1, attributes)
    parts.append(body)
    if family.pool:
        parts.append(rng.choice(blocks.SHOW))
    parts.append(rng.choice(blocks.ASK))
    if not tool:
        parts += [rng.choice(blocks.STEP), rng.choice(blocks.SOLUTION)]
    text = _joined(parts)
    return Template(text).substitute(_slots(design, rng))


def hint(design: Design, rng: random.Random) -> str:
    """Write a hint: the rule, in words that are no answers."""
    op = f" {design.op.word}"
    rule = f" {rule_text(design.op)}"
    take = " go" if design.op.kind == "step" else " take"
    return rng.choice(
        (f"Here{op} means{rule}.", f"The{op} gives{rule}.", f"With{op} you{take}{rule}.")
    )


def _attributes(body: str) -> tuple[str, str]:
    first, _, rest = body.lstrip("\n").partition("\n")
    if first.startswith("    ") and " = " in first and not first.startswith("     "):
        return f"{first}\n", rest.lstrip("\n")
    return "", body


def _joined(parts: list[str]) -> str:
    """Join blocks: a blank line before each method, none inside."""
    text = ""
    for part in parts:
        part = part.strip("\n")
        if not part:
            continue
        if text:
            text += "\n\n" if re.match(r"    (def|@)", part) else "\n"
        text += part
    return text + "\n"


def _slots(design: Design, rng: random.Random) -> dict[str, str]:
    op = design.op
    sign = "+" if op.amount >= 0 else "-"
    pairs = {"sum": "(one + two) % 10", "step": ""}
    pair = pairs.get(op.kind) or ("max(one, two)" if op.amount < 0 else "min(one, two)")
    return {
        "cls": design.family.cls,
        "theme": design.theme,
        "op": op.word,
        "skill": design.skill,
        "rounds": str(design.rounds),
        "options": str(design.options),
        "limit": str(design.rounds + design.spare),
        "shift": f"{sign} {abs(op.amount)}",
        "rank": str(op.amount),
        "pair": pair,
        "pool": design.family.pool,
        "lead": design.family.lead,
    }
