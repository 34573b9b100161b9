"""Which skills a regeneration asks for, of which kind, and when its designs are trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spade_runtime.spec import Kind
from spade_runtime.taxonomy import GAME_SKILLS, TOOL_SKILLS

# The six of the paper; the other three game skills are for environments written by hand.
TRAINED_GAME_SKILLS = GAME_SKILLS[:6]
TRAINED_TOOL_SKILLS = TOOL_SKILLS
TRAINED_SKILLS: Mapping[str, tuple[str, ...]] = {
    "games": TRAINED_GAME_SKILLS,
    "tools": TRAINED_TOOL_SKILLS,
    "mixed": TRAINED_GAME_SKILLS + TRAINED_TOOL_SKILLS,
}


def kind_of(skill: str) -> Kind:
    """Return the kind of environment that trains a skill.

    >>> kind_of("data_retrieval")
    'tool_use'
    """
    return "tool_use" if skill in TOOL_SKILLS else "game"


def interleaved(skills: Sequence[str]) -> tuple[str, ...]:
    """Return skills with those of the rarer kind spread evenly among the others.

    So that each regeneration designs environments of both kinds, it takes `mixed_span` skills.

    >>> interleaved(["optimization", "data_retrieval", "causal_inference"])
    ('optimization', 'causal_inference', 'data_retrieval')
    """
    games = [skill for skill in skills if kind_of(skill) == "game"]
    tools = [skill for skill in skills if kind_of(skill) == "tool_use"]
    common, rare = (games, tools) if len(games) >= len(tools) else (tools, games)
    many, few = iter(common), iter(rare)
    count = len(skills)
    return tuple(
        next(few if (i + 1) * len(rare) // count > i * len(rare) // count else many)
        for i in range(count)
    )


def mixed_span(skills: Sequence[str]) -> int:
    """Return how many neighbours of `interleaved` skills are always of both kinds.

    >>> mixed_span(["optimization", "data_retrieval", "causal_inference"])
    3
    """
    tools = sum(kind_of(skill) == "tool_use" for skill in skills)
    rare = min(tools, len(skills) - tools)
    return -(-len(skills) // rare) if rare else len(skills)


def rotation(skills: Sequence[str], per_regeneration: int, interval: int, step: int) -> list[str]:
    """Return the skills of the regeneration that `step` belongs to, going round the list.

    >>> rotation(["a", "b", "c"], 2, 4, 5)
    ['c', 'a']
    """
    if not skills:
        raise ValueError("no skills to rotate over")
    count = min(per_regeneration, len(skills))
    first = step // interval * count
    return [skills[(first + offset) % len(skills)] for offset in range(count)]


def slot_skills(skills: Sequence[str], slots: int) -> list[str]:
    """Return a skill for each slot, spread as evenly as they go.

    >>> slot_skills(["a", "b"], 3)
    ['a', 'b', 'a']
    """
    return [skills[slot % len(skills)] for slot in range(slots)]


@dataclass(frozen=True, slots=True)
class Window:
    """The life of the designs made at one step.

    Attributes:
        made: the step whose regeneration made them.
        plays: the steps in which they are played.
        trained: the step whose update takes them in; the number of steps itself means the flush
            at the end of the run.
    """

    made: int
    plays: tuple[int, ...]
    trained: int


def windows(steps: int, regenerate_every: int, designer_delay: int) -> list[Window]:
    """Return every window of a run.

    A pool is replaced at the next regeneration, so a design is played for `regenerate_every` steps
    at most; it is trained `designer_delay` steps after it was made, or at the end of the run.
    """
    return [
        Window(
            made,
            tuple(range(made, min(made + regenerate_every, steps))),
            min(made + designer_delay, steps),
        )
        for made in range(0, steps, regenerate_every)
    ]
