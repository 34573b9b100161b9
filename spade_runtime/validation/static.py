"""The gates that read a source without running it: file, syntax, policy, contract.

The parent looks at bytes only; parsing happens inside a locked-down child, since a parser can be
attacked as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spade_runtime.codes import CODES
from spade_runtime.sandbox.wire import RawFinding
from spade_runtime.spec import Limits
from spade_runtime.validation.bench import Bench
from spade_runtime.validation.report import Findings

STATIC_GATES = ("syntax", "policy", "contract")


def decode(data: bytes, size: int, limits: Limits, findings: Findings) -> str | None:
    """The file gate: a source's text, or None where there is none."""
    if size > limits.source_bytes:
        findings.add(
            "SPD002",
            f"a source has at most {limits.source_bytes} bytes; this one has {size}",
            "file",
        )
        return None
    place = data.find(0)
    if place >= 0:
        line = data.count(b"\n", 0, place) + 1
        findings.add("SPD001", f"the file holds a NUL byte at offset {place}", "file", line=line)
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        findings.add(
            "SPD001",
            f"the file is not UTF-8: byte 0x{data[problem.start]:02x} at offset {problem.start}",
            "file",
            line=line,
        )
        return None
    return text.replace("\r\n", "\n")


def run_inspection(bench: Bench) -> None:
    """Let a fresh child read the source; its findings are sorted into the static gates."""
    child = bench.open("main")
    bench.inspection = child.inspect()
    bench.keep("main", child)
    for row in bench.inspection.findings:
        bench.findings.add(
            row.code if row.code in CODES else "SPD805",
            row.message,
            _gate(row),
            line=row.line,
            column=row.column,
        )


def _gate(row: RawFinding) -> str:
    known = CODES.get(row.code)
    return known.gate if known is not None and known.gate in STATIC_GATES else "contract"


def checked(bench: Bench) -> Mapping[str, str]:
    """What the static gates looked at, by gate."""
    seen = bench.inspection
    if seen is None:
        return {}
    lines = bench.source.count("\n") + 1
    return {
        "syntax": f"{lines} lines",
        "policy": "imports: " + (_listed(seen.imports) or "none"),
        "contract": f"{seen.dialect} {seen.kind} {seen.class_name or ''}".strip(),
    }


def _listed(names: Sequence[str], limit: int = 12) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
