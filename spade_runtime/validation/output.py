"""Prints reports: for people, for CI annotations, and as a table by code."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from spade_runtime.codes import CODES
from spade_runtime.spec import Finding, ValidationReport
from spade_runtime.validation.text import visible

_COLOURS = {"accepted": "32", "rejected": "31", "error": "31", "warning": "33"}


def coloured(stream: TextIO) -> bool:
    """Whether a stream wants colours: a terminal, and NO_COLOR is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def _paint(word: str, colour: bool) -> str:
    return f"\x1b[{_COLOURS[word]}m{word}\x1b[0m" if colour else word


def place(row: Finding) -> str:
    """Where a finding applies, as far as its message does not end with that already.

    >>> from spade_runtime.spec import Finding
    >>> row = Finding(code="SPD401", severity="error", message="raised (line 3)", gate="play",
    ...               line=3, seed=7)
    >>> place(row), place(row.model_copy(update={"message": "raised"}))
    (' (seed 7)', ' (line 3, seed 7)')
    """
    parts = []
    if row.line is not None and f"(line {row.line})" not in row.message:
        column = "" if row.column is None else f":{row.column}"
        parts.append(f"line {row.line}{column}")
    if row.seed is not None:
        parts.append(f"seed {row.seed}")
    if row.action is not None:
        parts.append(f"action '{row.action}'")
    return f" ({', '.join(parts)})" if parts else ""


def text_lines(report: ValidationReport, *, colour: bool = False) -> list[str]:
    """A report as lines of text: the verdict, then one line a finding."""
    head = f"{visible(report.path, 4096)}: {_paint(report.verdict, colour)}"
    kind = " ".join(part for part in (report.dialect, report.kind) if part)
    lines = [f"{head} ({kind})" if kind else head]
    lines += [
        f"  {row.code} {_paint(row.severity, colour)}: {row.message}{place(row)}"
        for row in report.findings
    ]
    return lines


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def github_lines(report: ValidationReport) -> list[str]:
    """A report as workflow commands of GitHub Actions, one line a finding."""
    lines = []
    for row in report.findings:
        properties = [f"file={_property(visible(report.path, 4096))}"]
        if row.line is not None:
            properties.append(f"line={row.line}")
        if row.column is not None:
            properties.append(f"col={row.column}")
        properties.append(f"title={row.code}")
        seen = Finding.model_copy(row, update={"line": None})
        lines.append(f"::{row.severity} {','.join(properties)}::{_data(row.message + place(seen))}")
    return lines


class Tally:
    """Counts files by verdict and by code, and knows the exit code that they come to.

    Attributes:
        files: files that were looked at.
    """

    def __init__(self) -> None:
        self.files = 0
        self._verdicts: Counter[str] = Counter()
        self._codes: Counter[str] = Counter()
        self._failures: Counter[int] = Counter()
        self._claims: dict[str, dict[str, str]] = {}  # id -> hash -> the first file that has it

    def add(self, report: ValidationReport) -> None:
        """Count a report."""
        self.files += 1
        self._verdicts[report.verdict] += 1
        self._codes.update({row.code for row in report.findings})
        if report.id is not None and report.sha256 is not None:
            self._claims.setdefault(report.id, {}).setdefault(report.sha256, report.path)

    def failed(self, exit_code: int) -> None:
        """Count a file that has no verdict."""
        self.files += 1
        self._failures[exit_code] += 1

    @property
    def exit_code(self) -> int:
        """3 where the machine failed, 2 where a file could not be read, 1 for a rejection."""
        if self._failures:
            return max(self._failures)
        return 1 if self._verdicts["rejected"] else 0

    def lines(self) -> list[str]:
        """The counts: files by verdict, then files by code."""
        accepted, rejected = self._verdicts["accepted"], self._verdicts["rejected"]
        lines = [f"{self.files} files: {accepted} accepted, {rejected} rejected"]
        if self._failures:
            lines[0] += f", {sum(self._failures.values())} without a verdict"
        width = max((len(str(count)) for count in self._codes.values()), default=1)
        lines += [
            f"  {self._codes[code]:>{width}}  {code}  {CODES[code].title}"
            for code in CODES
            if self._codes[code]
        ]
        return lines

    def notes(self) -> list[str]:
        """A line for each id that different sources claim; no verdict depends on it."""
        return [
            f"note: {len(files)} different files claim the id {visible(name)}: "
            + ", ".join(visible(path, 4096) for path in [*files.values()][:3])
            + (", ..." if len(files) > 3 else "")
            + "; where one holds it, the others get their hash as a suffix"
            for name, files in self._claims.items()
            if len(files) > 1
        ]


def gate_lines(reports: Sequence[ValidationReport]) -> list[str]:
    """Seconds by gate, over all reports."""
    seconds: dict[str, float] = {}
    for report in reports:
        for gate in report.gates:
            seconds[gate.gate] = seconds.get(gate.gate, 0.0) + gate.seconds
    return [f"  {name:<12} {value:8.3f} s" for name, value in seconds.items()]
