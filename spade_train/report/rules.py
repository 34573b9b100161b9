"""The hidden rule of a source of the embedded policy's world, read without running it.

The levers of such a source are its rounds, its options and the reach of its rule; the last stands
in no attribute, so it is read from the lines that the families' sources are made of. A source of
another designer has no such lines, and then nothing is said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from spade_train.evidence.levers import rule_reach
from spade_train.tiny.families import FAMILIES
from spade_train.tiny.lexicon import OPS

_FAMILY = {family.cls: family.name for family in FAMILIES}
_CLASS = re.compile(r"^class (\w+)\(", re.MULTILINE)
_OPERATION = re.compile(r"\b(" + "|".join(op.word for op in OPS) + r")\b")


@dataclass(frozen=True, slots=True)
class Rule:
    """What an environment of the small world asks for.

    Attributes:
        family: name of its family.
        operation: the word that the agent sees.
        reach: steps that the rule goes, or the place from the end that it picks; None where it
            has no such grade, as for a sum.
    """

    family: str
    operation: str
    reach: float | None


def rule_of(source: str) -> Rule | None:
    """Return the rule of a source, None where it is none of the small world's.

    Title and text may name two operations where the designer slipped: the text is what is played.
    """
    found = _CLASS.search(source)
    words = _OPERATION.findall(source)
    if found is None or found[1] not in _FAMILY or not words:
        return None
    return Rule(_FAMILY[found[1]], words[-1], rule_reach(source))
