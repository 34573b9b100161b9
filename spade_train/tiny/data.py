"""Warm-start data: designs for prompts as the designer gets them, hints for sources, and play."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from spade_train.memory import MemoryRecord
from spade_train.prompts import (
    COMPACT_DOCUMENT_WORDS,
    DesignerContext,
    Style,
    designer_messages,
    hint_messages,
)
from spade_train.tiny.families import BY_SKILL, FAMILIES, Design, Family, hint, source
from spade_train.tiny.lexicon import OPS, THEMES, Op, rule_text

STYLE: Style = "compact"


@dataclass(frozen=True, slots=True)
class Chat:
    """One warm-start sample: a conversation whose assistant messages are to be learned.

    Attributes:
        purpose: `design`, `hint` or `play`.
        messages: the conversation.
        tools: tool schemas that the template shows.
    """

    purpose: str
    messages: list[dict[str, str]]
    tools: list[dict[str, Any]]


def random_design(
    rng: random.Random,
    family: Family | None = None,
    *,
    skill: str | None = None,
    themes: Sequence[str] = THEMES,
) -> Design:
    """Draw a design with its levers spread over all that its family allows."""
    if family is None:
        family = BY_SKILL[skill] if skill else rng.choice(FAMILIES)
    return Design(
        family=family,
        op=rng.choice(family.ops),
        theme=rng.choice(themes),
        skill=skill or rng.choice(family.skills),
        rounds=rng.randint(*family.rounds),
        options=rng.randint(*family.options),
        spare=rng.randint(0, 2) if family.kind == "tool_use" else 0,
        style=rng.getrandbits(30),
    ).within()


def shuffled_meaning(design: Design, rng: random.Random, easy: bool = False) -> Design:
    """Give a design's operation word a rule drawn at random, so that play never tells the real one.

    Args:
        design: whose family says which rules make sense.
        rng: draws word and rule.
        easy: one step either way, the largest or the smallest only.
    """
    rules = [op for op in design.family.ops if not easy or _is_near(op)]
    rule = rng.choice(rules)
    word = rng.choice(OPS).word
    return replace(design, op=Op(word, rule.kind, rule.amount)).within()


def inkling(op: Op) -> float:
    """Return how often the scripted player knows what a word means without being told.

    Seldom, and less often the further the rule reaches: the agent starts well below what it can
    do, some words are nearly within its reach and others hardly.

    >>> [inkling(op) for op in OPS[:5:2]]
    [0.35, 0.25, 0.18]
    """
    reach = abs(op.amount) if op.kind == "step" else 1 if _is_near(op) else 2
    return {1: 0.35, 2: 0.25, 3: 0.18}[reach]


def spelled_out(op: Op) -> Op:
    """Name an operation by its rule.

    >>> spelled_out(Op("ebb", "step", -2)).word
    'two steps back'
    """
    return replace(op, word=rule_text(op))


def _is_near(op: Op) -> bool:
    return (op.kind, op.amount) in {("step", 1), ("step", -1), ("order", 0), ("order", -1)}


def theme_of(document: str | None, rng: random.Random, themes: Sequence[str] = THEMES) -> str:
    """Return the first setting that a document names, or any.

    >>> theme_of("By the Old Mill they wait.", random.Random(0))
    'mill'
    """
    words = [word.strip(".,;:!?\"'()").lower() for word in (document or "").split()]
    for word in words:
        for form in (word, word.removesuffix("s")):
            if form in themes:
                return form
    return rng.choice(themes)


def moved(design: Design, harder: bool, rng: random.Random) -> Design:
    """Move one or two levers of a design towards harder or easier."""
    way = 1 if harder else -1
    rounds, opts = design.rounds, design.options
    if rng.random() < 0.6:
        rounds += way
    if rng.random() < 0.6 or rounds == design.rounds:
        opts += way * rng.randint(1, 2)
    return replace(design, rounds=rounds, options=opts).within()


def record_of(design: Design, win_rate: float, rng: random.Random) -> MemoryRecord:
    """Return what memory would hold of a design after its plays."""
    text = source(design)
    return MemoryRecord(
        sha256=sha256(text.encode()).hexdigest(),
        title=design.title,
        source=text,
        hint=hint(design, rng),
        kind=design.family.kind,
        skill=design.skill,
        win_rate=win_rate,
        regret=round(rng.uniform(0.0, 0.9), 2),
        regret_se=round(rng.uniform(0.02, 0.15), 2),
        step=rng.randrange(100),
    )


def design_chat(document: str | None, rng: random.Random) -> Chat:
    """Return a designer's prompt, and a design that heeds its skill, document and memory.

    Two designs in three follow the memory: near an exemplar, harder than what was too easy, easier
    than what was too hard. The others, and all without memory, spread over the levers.
    """
    skill = rng.choice(rng.choice(FAMILIES).skills)
    # The compact prompt shows the first words of a document only.
    shown = " ".join((document or "").split()[:COMPACT_DOCUMENT_WORDS])
    design = random_design(rng, skill=skill)
    good = [random_design(rng, skill=skill) for _ in range(rng.choice((0, 0, 1, 2, 2)))]
    bad = [random_design(rng, skill=skill) for _ in range(rng.choice((0, 0, 1, 2)))]
    easy = [rng.random() < 0.5 for _ in bad]
    guides = [(guide, None) for guide in good] + list(zip(bad, easy, strict=True))
    if guides and rng.random() < 0.67:
        guide, was_easy = rng.choice(guides)
        harder = rng.random() < 0.5 if was_easy is None else was_easy
        follower = moved(guide, harder, rng)
        design = replace(design, rounds=follower.rounds, options=follower.options).within()
    design = replace(design, theme=theme_of(shown, rng))
    context = DesignerContext(
        kind=design.family.kind,
        skill=skill,
        document=document,
        exemplars=tuple(record_of(one, round(rng.uniform(0.15, 0.85), 2), rng) for one in good),
        counterexamples=tuple(
            record_of(one, round(rng.uniform(0.9, 1) if e else rng.uniform(0, 0.1), 2), rng)
            for one, e in zip(bad, easy, strict=True)
        ),
        difficulty="medium",
        max_turns=8,
    )
    reply = {"role": "assistant", "content": source(design).rstrip("\n")}
    return Chat("design", [*designer_messages(STYLE, context), reply], [])


def hint_chat(rng: random.Random) -> Chat:
    """Return a hint prompt for a design, and its hint; half the rules are not the usual ones."""
    design = random_design(rng)
    if rng.random() < 0.5:
        design = shuffled_meaning(design, rng)
    prompt = hint_messages(STYLE, design.family.kind, source(design), design.title)
    return Chat("hint", [*prompt, {"role": "assistant", "content": hint(design, rng)}], [])
