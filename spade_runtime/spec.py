"""What an environment is on paper: its manifest, its tools, its limits, and what was found in it.

These models are the project's borders: files, reports and the command line are read and written
through them, and `schemas/` is generated from them. The sandbox's child imports none of this.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

CONTRACT_VERSION = 1
BLIND_WIN_LIMIT = 0.25  # of the profiles; a training run may set another

Kind = Literal["game", "tool_use"]
Dialect = Literal["contract", "published", "gem"]
Profile = Literal["lenient", "standard", "strict"]
Severity = Literal["error", "warning"]
Verdict = Literal["accepted", "rejected"]
IsolationLevel = Literal["strict", "best_effort", "none"]

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Limits(_Model):
    """What one environment may use (contract.md section 3).

    Attributes:
        load_seconds: processor time for loading the module.
        reset_seconds: processor time for one `reset`, construction included.
        step_seconds: processor time for one `step` or tool call.
        file_seconds: processor time for all gates of a file.
        wall_factor: the wall clock stops a call at this many times its processor time.
        memory_mib: address space of a child.
        numpy_memory_mib: the same where the class imports numpy or networkx.
        source_bytes: size of a source.
        observation_chars: length of one observation.
        info_bytes: size of one `info` as JSON.
        printed_bytes: what one call may print.
        reply_bytes: size of one instance's reply, besides what was printed.
    """

    load_seconds: float = Field(default=5.0, gt=0, le=600)
    reset_seconds: float = Field(default=2.0, gt=0, le=600)
    step_seconds: float = Field(default=1.0, gt=0, le=600)
    file_seconds: float = Field(default=30.0, gt=0, le=3600)
    wall_factor: float = Field(default=5.0, ge=1, le=100)
    memory_mib: int = Field(default=512, ge=64, le=65536)
    numpy_memory_mib: int = Field(default=1024, ge=128, le=65536)
    source_bytes: int = Field(default=65536, ge=1)
    observation_chars: int = Field(default=16384, ge=1, le=1_000_000)
    info_bytes: int = Field(default=8192, ge=2, le=1_000_000)
    printed_bytes: int = Field(default=65536, ge=0, le=16_777_216)
    reply_bytes: int = Field(default=98304, ge=1024, le=16_777_216)


class Finding(_Model):
    """One thing a gate found, with its stable code and where it was seen."""

    code: str = Field(pattern=r"^SPD\d{3}$")
    severity: Severity
    message: str
    gate: str
    line: int | None = None
    column: int | None = None
    seed: int | None = None
    action: str | None = None


class GateRecord(_Model):
    """How one gate ended, and how long it took in seconds."""

    gate: str
    status: Literal["passed", "failed", "skipped"]
    seconds: float = 0.0
    checked: str = ""


class ToolSpec(_Model):
    """One tool in the OpenAI function form, without the `{"type": "function"}` wrapper."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})


class Provenance(_Model):
    """Where an environment came from; every field is None for one written by hand."""

    designer: str | None = None
    corpus_document: str | None = None
    parents: list[str] = Field(default_factory=list)
    run: str | None = None
    step: int | None = None
    created: str | None = None


class ValidationSummary(_Model):
    """The verdict that a manifest carries; it counts only where this machine recorded it."""

    profile: Profile
    verdict: Verdict
    findings: list[Finding] = Field(default_factory=list)
    runtime_version: str


class EnvSpec(_Model):
    """The manifest of an environment (contract.md section 4), kept beside its source.

    `reward_range` is what the dialect allows, `tools` the schemas of a tool-use environment, and
    `max_turns` the class's own limit in agent messages.
    """

    contract_version: int = CONTRACT_VERSION
    id: str
    sha256: Sha256
    kind: Kind
    dialect: Dialect = "contract"
    title: str
    skill: str
    max_turns: int = Field(default=20, ge=1, le=100)
    reward_range: tuple[float, float] = (-1.0, 1.0)
    tools: list[ToolSpec] = Field(default_factory=list)
    hint: str | None = None
    provenance: Provenance = Field(default_factory=Provenance)
    validation: ValidationSummary | None = None
    manifest_sha256: Sha256 | None = None


class ValidationReport(_Model):
    """What a validator says of one file (contract.md section 5)."""

    contract_version: int = CONTRACT_VERSION
    path: str
    sha256: Sha256 | None = None
    id: str | None = None
    kind: Kind | None = None
    dialect: Dialect | None = None
    verdict: Verdict
    findings: list[Finding] = Field(default_factory=list)
    gates: list[GateRecord] = Field(default_factory=list)
    isolation: str
