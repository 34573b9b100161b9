"""One answer of the designer, and what a regeneration brought."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from spade_runtime.spec import Finding, Kind, ValidationReport
from spade_train.analysis.duplicates import normalise_source
from spade_train.hints import LEAK
from spade_train.memory import Memory
from spade_train.population import Design
from spade_train.skills import kind_of
from spade_train.tokens import Conversation

_TITLE = re.compile(r"^\s+title\s*=\s*[\"'](.+?)[\"']\s*$", re.MULTILINE)
_DOCSTRING = re.compile(r"""^\s+[\"']{3}(.+?)(?:[\"']{3}|$)""", re.MULTILINE)
# The finding that the judge did not answer.
UNJUDGED = "SPD604"
# Text without code is kept in the records up to this length.
SHOWN_CHARS = 4000


@dataclass(slots=True)
class Try:
    """One answer of the designer, with what became of it: a line of `designs.jsonl`."""

    step: int
    slot: int
    number: int
    skill: str
    document_id: str | None
    exemplars: tuple[str, ...]
    text: str
    sample: Conversation | None
    tokens: int
    source: str | None = None
    reason: str = ""
    report: ValidationReport | None = None
    title: str = ""
    hint: str | None = None
    hints_refused: list[tuple[str, str]] = field(default_factory=list)
    hint_sample: Conversation | None = None
    duplicate_of: str | None = None
    refused: bool = False  # whoever designs would not answer the prompt

    @property
    def kind(self) -> Kind:
        """The kind that was asked for: the one that trains the skill."""
        return kind_of(self.skill)

    @property
    def accepted(self) -> bool:
        """Whether the validator accepted its source, and of the kind that was asked for."""
        return self.report is not None and self.report.verdict == "accepted" and not self.reason

    @property
    def unjudged(self) -> bool:
        """Whether nobody can say what it is worth, because the judge of its criteria was silent."""
        return self.report is not None and any(f.code == UNJUDGED for f in self.report.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the line of `designs.jsonl`."""
        findings: Sequence[Finding] = self.report.findings if self.report else ()
        return {
            "step": self.step,
            "slot": self.slot,
            "try": self.number,
            "kind": self.kind,
            "skill": self.skill,
            "title": self.title,
            "sha256": self.report.sha256 if self.report else None,
            "source": self.source,
            "hint": self.hint,
            "hints_refused": [list(pair) for pair in self.hints_refused],
            "verdict": "accepted" if self.accepted else "rejected",
            "reason": self.reason,
            "findings": [
                {k: getattr(f, k) for k in ("code", "severity", "message", "gate", "line")}
                for f in findings
            ],
            "document_id": self.document_id,
            "tokens": self.tokens,
            "exemplars": list(self.exemplars),
            "duplicate_of": self.duplicate_of,
            "raw_text_if_no_code": None if self.source else self.text[:SHOWN_CHARS],
        }


@dataclass(frozen=True, slots=True)
class Regeneration:
    """What a regeneration brought.

    Attributes:
        pool: the accepted environments, by slot.
        invalid: at most one invalid try a slot, where such tries are paid.
        tries: all of them, in order.
    """

    pool: list[Design]
    invalid: list[Design]
    tries: list[Try]

    @property
    def acceptance(self) -> float | None:
        """Accepted tries over tries."""
        if not self.tries:
            return None
        return sum(attempt.accepted for attempt in self.tries) / len(self.tries)


def mark_duplicates(accepted: Sequence[Try], memory: Memory) -> None:
    """Say of which earlier environment, of this pool or the memory, a design is a copy."""
    seen: dict[str, str] = {}
    for attempt in accepted:
        source = attempt.source or ""
        own = (attempt.report.sha256 if attempt.report else None) or ""
        key = normalise_source(source)
        earlier = memory.duplicate_of(source)
        attempt.duplicate_of = seen.get(key) or (earlier.sha256 if earlier else None)
        seen.setdefault(key, own)


def without_leaks(report: ValidationReport) -> ValidationReport:
    """Return the verdict on the code alone."""
    findings = [finding for finding in report.findings if finding.code != LEAK]
    if len(findings) == len(report.findings):
        return report
    sound = not any(finding.severity == "error" for finding in findings)
    verdict = "accepted" if sound else "rejected"
    return report.model_copy(update={"findings": findings, "verdict": verdict})


def spoken_title(source: str) -> str:
    """Return what a source that nobody has checked yet seems to call itself."""
    found = _TITLE.search(source) or _DOCSTRING.search(source)
    return found.group(1).strip() if found else ""


def read_title(source: str) -> str:
    """Return the title that an accepted source gives itself."""
    from spade_runtime.contract import read

    return read(source).title
