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
    """Return skills with the two kinds taking turns; those of the rarer kind come round again.

    Any two neighbours, the last and the first too, are of both kinds, so a regeneration of two
    skills or more always designs games and desks.

    >>> interleaved(["optimization", "causal_inference", "data_retrieval"])
    ('optimization', 'data_retrieval', 'causal_inference', 'data_retrieval')
    """
    games = [skill for skill in skills if kind_of(skill) == "game"]
    tools = [skill for skill in skills if kind_of(skill) == "tool_use"]
    if not games or not tools:
        return tuple(skills)
    turns = range(max(len(games), len(tools)))
    return tuple(skill for i in turns for skill in (games[i % len(games)], tools[i % len(tools)]))


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
