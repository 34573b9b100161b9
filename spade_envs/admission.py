"""What `register` asks before it registers: is the environment sound, and where does it live."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from spade_envs.pool import Pool
from spade_envs.shared import shared_pool
from spade_runtime import __version__
from spade_runtime.errors import InvalidEnvironment, UsageError
from spade_runtime.records import Records
from spade_runtime.sandbox.opening import read_text
from spade_runtime.spec import (
    EnvSpec,
    IsolationLevel,
    Limits,
    Profile,
    ValidationReport,
    ValidationSummary,
)
from spade_runtime.validation import Validator
from spade_runtime.validation.output import place
from spade_runtime.words import an


def admit(
    source: str | Path | EnvSpec,
    *,
    pool: str | Path | None,
    profile: Profile,
    hint: str | None,
    level: IsolationLevel,
) -> tuple[EnvSpec, dict[str, Any]]:
    """Validate a source, store it where that was asked for, and refer to it.

    Returns:
        The manifest, and the reference as kwargs of `SpadeEnv`.

    Raises:
        InvalidEnvironment: it is rejected.
        UsageError: there is nothing to validate.
    """
    if isinstance(source, EnvSpec):
        return _from_manifest(source, pool, profile, level)
    path = _as_path(source)
    text = read_text(path if path is not None else str(source), limit=Limits().source_bytes)
    report = _validated(path if path is not None else text, profile, hint, level)
    if report.verdict == "rejected":
        raise InvalidEnvironment(refusal(report), report.findings)
    spec = _manifest(text, report, profile, _hint(path, hint), level)
    if pool is not None:
        stored = Pool(pool, create=True).add(text, spec)
        Records().remember(stored.sha256, profile, "accepted")
        return stored, {"pool": str(Path(pool).resolve()), "sha256": stored.sha256}
    if path is not None:
        return spec, {"path": str(path.resolve()), "sha256": spec.sha256}
    return spec, {"source": text}


def refusal(report: ValidationReport) -> str:
    """The errors of a rejected report, as one message."""
    errors = [finding for finding in report.findings if finding.severity == "error"]
    lines = [f"  {finding.code}: {finding.message}{place(finding)}" for finding in errors[:5]]
    if len(errors) > 5:
        lines.append(f"  and {len(errors) - 5} more")
    first = errors[0].code if errors else "CODE"
    return "\n".join(
        [f"{report.path} is rejected:", *lines, f"`spade explain {first}` says how to mend it"]
    )


def _as_path(source: str | Path) -> Path | None:
    """A path, or a string that can only be one; a source has line breaks."""
    if isinstance(source, Path):
        return source
    if not isinstance(source, str):
        raise UsageError(
            f"register takes a path, a source text or an EnvSpec, not {an(type(source).__name__)}"
        )
    return Path(source) if "\n" not in source else None


def _hint(path: Path | None, hint: str | None) -> str | None:
    if hint is not None or path is None:
        return hint
    beside = path.with_name(f"{path.stem}.hint.txt")
    return beside.read_text("utf-8").strip() if beside.is_file() else None


def _validated(
    source: str | Path, profile: Profile, hint: str | None, level: IsolationLevel
) -> ValidationReport:
    with Validator(pool=shared_pool(level), level=level) as validator:
        return validator.validate(source, profile=profile, hint=hint)


def _manifest(
    text: str, report: ValidationReport, profile: Profile, hint: str | None, level: IsolationLevel
) -> EnvSpec:
    with shared_pool(level).open(text) as session:
        spec = session.spec
    summary = ValidationSummary(
        profile=profile,
        verdict=report.verdict,
        findings=report.findings,
        runtime_version=__version__,
    )
    digest = hashlib.sha256(text.encode()).hexdigest()
    return spec.model_copy(update={"sha256": digest, "hint": hint, "validation": summary})


def _from_manifest(
    spec: EnvSpec, pool: str | Path | None, profile: Profile, level: IsolationLevel
) -> tuple[EnvSpec, dict[str, Any]]:
    if pool is None:
        raise UsageError(
            f"the manifest of {spec.id} has no source in it; pass pool=DIR of the pool that holds "
            "it, or register the source's path"
        )
    stored = Pool(pool)
    text, kept = stored.source(spec.sha256), stored.spec(spec.sha256)
    if not Records().holds(spec.sha256, profile):
        report = _validated(text, profile, kept.hint, level)
        if report.verdict == "rejected":
            raise InvalidEnvironment(refusal(report), report.findings)
        Records().remember(spec.sha256, profile, "accepted")
    return kept, {"pool": str(Path(pool).resolve()), "sha256": spec.sha256}
