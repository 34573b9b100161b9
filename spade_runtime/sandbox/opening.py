"""From a source to a loaded child and its manifest: the static gates, then the module.

The static gates (files to contract) run the first time that a pool opens a source, and what they
say is kept by the source's hash; a verdict that stands in a manifest is taken for what it is, text.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from spade_runtime import codes
from spade_runtime.errors import (
    EnvMemoryExceeded,
    EnvOutputTooLarge,
    EnvProtocolError,
    EnvRaised,
    Evidence,
    InvalidEnvironment,
    UsageError,
)
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.herd import Herd
from spade_runtime.sandbox.wire import Inspection, LoadReply, Raised
from spade_runtime.schemalint import tool_problems
from spade_runtime.spec import EnvSpec, Finding, ToolSpec

_PUBLISHED_REWARDS = (-10.0, 10.0)


def read_text(source: str | Path, *, limit: int) -> str:
    """Take a source's text, or read it from its file.

    Args:
        source: the text itself, or a path; a single line that ends in `.py` is a path.
        limit: bytes that a source may have.

    Raises:
        UsageError: the file can't be read.
        InvalidEnvironment: SPD001 or SPD002.
    """
    if isinstance(source, str) and source.endswith(".py") and "\n" not in source:
        source = Path(source)
    if isinstance(source, Path):
        try:
            data = source.read_bytes()
        except OSError as problem:
            raise UsageError(
                f"{str(source)!r} can't be read ({problem.strerror}); name a file that holds an "
                "environment"
            ) from problem
    else:
        data = source.encode("utf-8", "surrogatepass")
    if len(data) > limit:
        raise _refused("SPD002", "file", f"it is {len(data)} bytes long; {limit} are allowed")
    try:
        text = data.decode()
    except UnicodeDecodeError as problem:
        raise _refused("SPD001", "file", f"it is not UTF-8 (byte {problem.start})") from problem
    if "\0" in text:
        raise _refused("SPD001", "file", f"it holds a NUL at character {text.index(chr(0))}")
    return text


def prepare(child: RawChild | Herd, text: str) -> EnvSpec:
    """Have the static gates run, and load the module in a fresh child.

    Returns:
        The manifest, written from what the child claims of the class and its tools.

    Raises:
        InvalidEnvironment: a static gate, or a tool's schema, rejects it.
        EnvFault: the module raises, hangs, or breaks something while it loads.
    """
    reading = child.inspect()
    findings = [
        Finding(
            code=one.code,
            severity=codes.severity(one.code),
            message=one.message,
            gate=codes.CODES[one.code].gate,
            line=one.line,
            column=one.column,
        )
        for one in reading.findings
        if one.code in codes.CODES
    ]
    _accept(findings)
    if reading.class_name is None:
        raise _refused("SPD201", "contract", "no environment class was found")
    reply = child.load()
    if reply.raised is not None:
        raise raised_fault(reply.raised, "SPD301")
    return _spec(text, reading, reply)


def raised_fault(raised: Raised, code: str) -> Exception:
    """The typed fault for an exception that left the class's code.

    Args:
        raised: what the child claims.
        code: the code of the call, where nothing outranks it.
    """
    kinds = {"SPD802": EnvMemoryExceeded, "SPD804": EnvOutputTooLarge}
    kind = kinds.get(raised.code, EnvRaised)
    where = f" (line {raised.line})" if raised.line is not None else ""
    return kind(
        f"{raised.phase} raised {raised.exc_type}: {raised.message}{where}",
        code=raised.code or code,
        evidence=Evidence(
            phase=raised.phase,
            exception=raised.exc_type,
            line=raised.line,
            printed=raised.printed_tail,
        ),
    )


def _spec(text: str, reading: Inspection, reply: LoadReply) -> EnvSpec:
    _accept(
        [
            Finding(code=code, severity="error", message=message, gate="tools")
            for code, message in tool_problems(reply.schemas, reply.problems)
            if code in codes.CODES
        ]
    )
    digest = hashlib.sha256(text.encode()).hexdigest()
    written = reading.class_name or ""
    name = written.removesuffix("Env") or written
    try:
        return EnvSpec.model_validate(
            {
                "id": f"spade/{name}-v{reading.version}",
                "sha256": digest,
                "kind": reading.kind,
                "dialect": reading.dialect,
                "title": reading.title,
                "skill": reading.skill,
                "max_turns": reading.max_turns,
                "reward_range": _PUBLISHED_REWARDS
                if reading.dialect == "published"
                else (-1.0, 1.0),
                "tools": _tools(reply.schemas),
            }
        )
    except ValidationError as problem:
        raise EnvProtocolError(
            f"the child's account of the class is no manifest: {problem.errors()[0]['msg']}"
        ) from problem


def _tools(schemas: bytes) -> list[ToolSpec]:
    try:
        listed: Any = json.loads(schemas)
        return [ToolSpec.model_validate(schema) for schema in listed]
    except (ValueError, TypeError, RecursionError) as problem:
        raise EnvProtocolError(f"the tools' schemas do not decode: {problem}") from problem


def _accept(findings: list[Finding]) -> None:
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        first = errors[0]
        where = f" (line {first.line})" if first.line is not None else ""
        more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
        raise InvalidEnvironment(
            f"{first.code}: {first.message}{where}{more}; `spade explain {first.code}` tells more",
            findings,
        )


def _refused(code: str, gate: str, message: str) -> InvalidEnvironment:
    finding = Finding(code=code, severity="error", message=message, gate=gate)
    return InvalidEnvironment(f"{code}: {message}", [finding])
