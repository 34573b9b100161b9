"""Takes environments into a pool: folders of sources, published pools, and other pools.

A folder may bring checksums, as `SHA256SUMS` (the form of `sha256sum`) or `checksums.json` (path to
hash); a file that does not match is refused, and one that is not there is named. Each environment
is added by itself, so an import that was interrupted is gone on with by running it again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from posixpath import normpath
from typing import Literal, NamedTuple

from spade_envs.manifest import is_hash, parsed, read_manifest, read_whole, source_hash
from spade_envs.pool import MARKER, Pool
from spade_runtime import __version__
from spade_runtime.errors import EnvFault, InvalidEnvironment, UsageError
from spade_runtime.records import Records
from spade_runtime.sandbox import SandboxPool
from spade_runtime.spec import EnvSpec, Profile, ValidationReport, ValidationSummary
from spade_runtime.validation import Validator

_SUM = re.compile(r"([0-9a-fA-F]{64}) [ *](.+)")


class Imported(NamedTuple):
    """What became of one file.

    Attributes:
        status: `added`, `known` (it was there already), `rejected` by the validator, `tampered`
            (its checksum or seal does not match), `missing` though there is a checksum of it, or
            `unreadable`.
        name: the id in the pool, or "".
        message: why it was not added, or why it was added with another id than its own.
    """

    path: Path
    status: Literal["added", "known", "rejected", "tampered", "missing", "unreadable"]
    name: str = ""
    message: str = ""


class Importer:
    """Brings sources into a pool.

    Args:
        pool: where to.
        sandbox: in which sources are opened.
        validator: checks each source first; without one they are added without a verdict.
        profile: of that check.
        records: where this machine's verdicts are kept.
    """

    def __init__(
        self,
        pool: Pool,
        sandbox: SandboxPool,
        validator: Validator | None = None,
        *,
        profile: Profile = "standard",
        records: Records | None = None,
    ) -> None:
        self.pool = pool
        self.sandbox = sandbox
        self.validator = validator
        self.profile = profile
        self.records = records or Records()

    def folder(self, folder: Path) -> Iterator[Imported]:
        """Import a folder of sources, or another pool, one after the other.

        Raises:
            UsageError: there is no such folder, or nothing in it to import.
        """
        if not folder.is_dir():
            raise UsageError(f"there is no folder {folder}")
        if (folder / MARKER).is_file():
            yield from self._other_pool(Pool(folder))
            return
        refuse_empty(folder)
        sources = sorted(_sources(folder))
        sums = read_checksums(folder)
        expected = {folder / name: digest for name, digest in sums.items()}
        for path in sources:
            yield self._file(path, expected)
        yield from _beside(expected, sources)

    def _file(self, path: Path, expected: dict[Path, str]) -> Imported:
        read: list[bytes] = []
        hint = _hint_of(path)
        for file in (path, hint) if hint.is_file() else (path,):
            try:
                data = read_whole(file)
            except OSError as error:
                return Imported(file, "unreadable", message=error.strerror or str(error))
            if (seen := source_hash(data)) != expected.get(file, seen):
                return _tampered(file, seen, expected[file])
            read.append(data)
        told = read[1].decode("utf-8", "replace").strip() if read[1:] else None
        return self._take(path, read[0], None, told)

    def _other_pool(self, other: Pool) -> Iterator[Imported]:
        for entry in other.entries():
            home = other.path(entry.sha256)
            try:
                source = other.source(entry.sha256)
                spec = read_manifest(home / "env.json", sha256=entry.sha256)
            except InvalidEnvironment as error:
                yield Imported(home, "tampered", message=str(error))
                continue
            yield self._take(home / "env.py", source.encode(), spec, spec.hint)

    def _take(self, path: Path, data: bytes, spec: EnvSpec | None, hint: str | None) -> Imported:
        sha256 = source_hash(data)
        if sha256 in self.pool:
            try:
                return Imported(path, "known", self.pool.listed(sha256).id)
            except InvalidEnvironment as error:
                return Imported(path, "tampered", message=str(error))
        try:
            report = self._check(data, str(path), hint)
            if report is not None and report.verdict == "rejected":
                return Imported(path, "rejected", message=_reasons(report))
            manifest = self._manifest(data, spec, hint, report)
            stored = self.pool.add(data, manifest)
        except (InvalidEnvironment, EnvFault) as error:
            return Imported(path, "rejected", message=str(error))
        moved = "" if stored.id == manifest.id else f"another source holds the id {manifest.id}"
        return Imported(path, "added", stored.id, moved)

    def _check(self, data: bytes, path: str, hint: str | None) -> ValidationReport | None:
        """This machine's own verdict; a manifest's claim is not asked."""
        if self.validator is None:
            return None
        report = self.validator.validate(data, profile=self.profile, hint=hint, path=path)
        self.records.remember(source_hash(data), self.profile, report.verdict)
        return report

    def _manifest(
        self, data: bytes, spec: EnvSpec | None, hint: str | None, report: ValidationReport | None
    ) -> EnvSpec:
        """A manifest with facts from the source itself, and provenance and hint as they came."""
        with self.sandbox.open(_text(data)) as session:
            fresh = session.spec
        said = None
        if report is not None:
            said = ValidationSummary(
                profile=self.profile,
                verdict=report.verdict,
                findings=report.findings,
                runtime_version=__version__,
            )
        changes: dict[str, object] = {"hint": hint, "validation": said}
        if spec is not None:
            changes["provenance"] = spec.provenance
        return fresh.model_copy(update=changes)


def read_checksums(folder: Path) -> dict[str, str]:
    """Expected hashes by path below the folder; none where it brings no checksums.

    Raises:
        UsageError: a file of checksums that can't be read, leads out of the folder, or has two
            hashes for one path.
    """
    sums: dict[str, str] = {}
    for file, name, digest in [*_lines(folder / "SHA256SUMS"), *_table(folder / "checksums.json")]:
        path = normpath(name)
        if path.startswith(("/", "../")) or path in ("", ".", "..") or "\0" in path:
            raise UsageError(f"{file}: {name!r:.200} is no path of a file below {folder}")
        if not is_hash(digest):
            raise UsageError(f"{file}: {digest!r:.80} is no SHA-256 of {name!r:.200}")
        if sums.setdefault(path, digest) != digest:
            raise UsageError(f"{file}: there is another hash of {name!r:.200} already")
    return sums


def _lines(listed: Path) -> Iterator[tuple[Path, str, str]]:
    if not listed.is_file():
        return
    for number, line in enumerate(_read(listed).split("\n"), 1):
        found = _SUM.fullmatch(line.removesuffix("\r"))
        if found:
            yield listed, found[2], found[1].lower()
        elif line.strip():
            raise UsageError(f"{listed}, line {number}: expected a hash, two blanks, a path")


def _table(table: Path) -> Iterator[tuple[Path, str, str]]:
    if not table.is_file():
        return
    try:
        rows = parsed(_read(table)).items()
    except (ValueError, AttributeError) as error:
        raise UsageError(f"{table} is no JSON object of paths and hashes") from error
    for name, digest in rows:
        yield table, name, str(digest).lower()


def _beside(expected: dict[Path, str], sources: Sequence[Path]) -> Iterator[Imported]:
    """What has a checksum and is no source: it is held to it, and has to be there."""
    for path in sorted(expected.keys() - set(sources) - set(map(_hint_of, sources))):
        if not path.is_file():
            yield Imported(path, "missing", message="there is a checksum of it, and no such file")
            continue
        try:
            with path.open("rb") as file:
                seen = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            yield Imported(path, "unreadable", message=error.strerror or str(error))
            continue
        if seen != expected[path]:
            yield _tampered(path, seen, expected[path])


def _tampered(path: Path, seen: str, expected: str) -> Imported:
    return Imported(path, "tampered", message=f"its hash is {seen}, not {expected}")


def _hint_of(path: Path) -> Path:
    return path.with_name(f"{path.stem}.hint.txt")


def _read(path: Path) -> str:
    try:
        return read_whole(path).decode("utf-8")
    except OSError as error:
        raise UsageError(f"can't read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"can't read {path}: not UTF-8 (byte {error.start})") from error


def refuse_empty(folder: Path) -> None:
    """Refuse a folder without sources, before a pool is made for them.

    Raises:
        UsageError: there is nothing in it to import.
    """
    if not (folder / MARKER).is_file() and not any(_sources(folder)):
        raise UsageError(f"{folder} holds no Python files; name the folder of the sources")


def _sources(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith((".", "__")) for part in parts)
        if not hidden and path.is_file():
            yield path


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidEnvironment(f"SPD001: not UTF-8 (byte {error.start})") from error


def _reasons(report: ValidationReport) -> str:
    errors = [finding for finding in report.findings if finding.severity == "error"]
    return "; ".join(f"{finding.code} {finding.message}" for finding in errors[:3])
