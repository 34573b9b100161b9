"""Collects findings and turns them into a verdict and a report (contract.md sections 3 and 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from spade_runtime.codes import GATES, is_fault, severity
from spade_runtime.spec import (
    Dialect,
    Finding,
    GateRecord,
    Kind,
    Profile,
    ValidationReport,
    Verdict,
)
from spade_runtime.validation.text import steady, visible

_PLACES_PER_CODE = 20


@dataclass(frozen=True, slots=True)
class Identity:
    """What the source says about itself, read without running it."""

    id: str | None = None
    kind: Kind | None = None
    dialect: Dialect | None = None


@dataclass
class Findings:
    """The findings of one file, in the order in which they were made.

    A code that gates find by running the file is reported once, with its first witness; a code
    that is read off the source is reported for every place, up to twenty.

    Attributes:
        profile: decides which codes are errors.
        rows: what was found.
    """

    profile: Profile
    rows: list[Finding] = field(default_factory=list)
    _keys: set[tuple[str, int | None, int | None]] = field(default_factory=set)

    def add(
        self,
        code: str,
        message: str,
        gate: str,
        *,
        line: int | None = None,
        column: int | None = None,
        seed: int | None = None,
        action: str | None = None,
        soft: bool = False,
    ) -> None:
        """Record a finding; texts in it are made visible, whatever they hold.

        A soft one is a warning in every profile.
        """
        static = GATES.index(gate) <= GATES.index("contract")
        key = (code, line, column) if static else (code, None, None)
        if key in self._keys or self.count(code) >= _PLACES_PER_CODE:
            return
        self._keys.add(key)
        self.rows.append(
            Finding(
                code=code,
                severity="warning" if soft else severity(code, self.profile),
                message=visible(steady(message), 600),
                gate=gate,
                line=line,
                column=column,
                seed=seed,
                action=None if action is None else visible(action, 200),
            )
        )

    def count(self, code: str) -> int:
        """How many findings carry a code."""
        return sum(row.code == code for row in self.rows)

    def has(self, *codes: str) -> bool:
        """Whether one of the codes was found."""
        return any(row.code in codes for row in self.rows)

    @property
    def faulted(self) -> bool:
        """Whether the process faulted (8xx): nothing is checked after that."""
        return any(is_fault(row.code) for row in self.rows)

    @property
    def failed(self) -> bool:
        """Whether an error was found."""
        return any(row.severity == "error" for row in self.rows)

    def failed_in(self, gate: str) -> bool:
        """Whether a gate found an error."""
        return any(row.gate == gate and row.severity == "error" for row in self.rows)

    def ordered(self) -> list[Finding]:
        """The findings by gate, code and place."""
        return sorted(
            self.rows,
            key=lambda row: (GATES.index(row.gate), row.code, row.line or 0, row.column or 0),
        )


def verdict_of(findings: Sequence[Finding]) -> Verdict:
    """A file is rejected by its errors; warnings alone accept it."""
    return "rejected" if any(row.severity == "error" for row in findings) else "accepted"


def assemble(
    *,
    path: str,
    sha256: str | None,
    identity: Identity,
    findings: Findings,
    gates: Sequence[GateRecord],
    isolation: str,
) -> ValidationReport:
    """Build the report of one file."""
    rows = findings.ordered()
    return ValidationReport(
        path=path,
        sha256=sha256,
        id=identity.id,
        kind=identity.kind,
        dialect=identity.dialect,
        verdict=verdict_of(rows),
        findings=rows,
        gates=list(gates),
        isolation=isolation,
    )


def status_of(gate: str, findings: Findings, ran: bool) -> Literal["passed", "failed", "skipped"]:
    """How a gate ended: it fails by its own errors only, wherever they were seen."""
    if findings.failed_in(gate):
        return "failed"
    return "passed" if ran else "skipped"
