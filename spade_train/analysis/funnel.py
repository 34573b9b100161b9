"""Where designs are lost: how many tries reach which gate, and the finding that stopped them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

NO_CODE = "no code"
OTHER_KIND = "other kind"


@dataclass(slots=True)
class Funnel:
    """Counts over the tries of a run or a step.

    Attributes:
        tries: designs that were written.
        with_code: those in which a code block was found.
        accepted: those that the validator accepted.
        by_code: for each finding code (and `no code`, `other kind`) the tries that it stopped; the
            first error of a try counts.
        tries_by_number: for the first, second, ... try of a slot: (tries, accepted).
    """

    tries: int = 0
    with_code: int = 0
    accepted: int = 0
    by_code: Counter[str] = field(default_factory=Counter)
    tries_by_number: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def acceptance(self) -> float | None:
        """Accepted tries / tries, None where there were none."""
        return self.accepted / self.tries if self.tries else None


def stopping_code(design: Mapping[str, Any]) -> str | None:
    """Return what stopped a try, None if it was accepted.

    It is the code of the first error, `no code`, or `other kind` for a sound environment of a kind
    that was not asked for: a tool desk where a game was wanted, or the reverse.
    """
    if design.get("verdict") == "accepted":
        return None
    if not design.get("source"):
        return NO_CODE
    for finding in design.get("findings") or ():
        if finding.get("severity", "error") == "error":
            return str(finding["code"])
    return OTHER_KIND


def acceptance_funnel(designs: Iterable[Mapping[str, Any]]) -> Funnel:
    """Count the tries of `designs.jsonl`.

    >>> acceptance_funnel([{"verdict": "accepted", "source": "x", "try": 0}]).acceptance
    1.0
    """
    funnel = Funnel()
    for design in designs:
        code = stopping_code(design)
        funnel.tries += 1
        funnel.with_code += code != NO_CODE
        funnel.accepted += code is None
        if code is not None:
            funnel.by_code[code] += 1
        number = int(design.get("try", 0))
        tries, accepted = funnel.tries_by_number.get(number, (0, 0))
        funnel.tries_by_number[number] = (tries + 1, accepted + (code is None))
    return funnel
