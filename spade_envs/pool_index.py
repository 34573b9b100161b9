"""The index of a pool: an SQLite table that answers queries without reading ten thousand files.

The files are the truth. The index can be thrown away and built again from them.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from spade_runtime.errors import SpadeError
from spade_runtime.spec import EnvSpec

_COLUMNS = (
    "sha256, id, kind, dialect, title, skill, max_turns, manifest_sha256, "
    "profile, verdict, plays, win_rate, regret, regret_se"
)
_SCHEMA = """
CREATE TABLE IF NOT EXISTS environments (
    sha256 TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, dialect TEXT NOT NULL,
    title TEXT NOT NULL, skill TEXT NOT NULL, max_turns INTEGER NOT NULL,
    manifest_sha256 TEXT NOT NULL, profile TEXT, verdict TEXT,
    plays INTEGER NOT NULL DEFAULT 0, win_rate REAL, regret REAL, regret_se REAL
);
CREATE INDEX IF NOT EXISTS names ON environments (id, sha256);
"""
# What SQLite says where the disk is full or the directory may not be written.
_HOST_FAULTS = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_FULL", "SQLITE_IOERR")
# What it says to a reader where a writer was killed: the journal it left has to be played back.
_LEFT_OPEN = ("SQLITE_READONLY_ROLLBACK",)


class DamagedIndex(SpadeError):
    """The file is no index any more; it can be built again from the files."""


class Card(BaseModel):
    """How well an environment can be learned from: measured, and so no part of the manifest.

    Attributes:
        plays: unhinted plays behind the numbers.
        win_rate: share of them that were solved, in [0, 1].
        win_rate_hinted: the same for plays with the hint.
        regret: mean return with the hint minus mean return without, in [-2, 2].
        regret_se: its standard error.
        policy: which policy played.
        step: training step of the last play.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    plays: int = Field(default=0, ge=0)
    win_rate: float | None = Field(default=None, ge=0, le=1)
    win_rate_hinted: float | None = Field(default=None, ge=0, le=1)
    regret: float | None = Field(default=None, ge=-2, le=2)
    regret_se: float | None = Field(default=None, ge=0)
    policy: str | None = None
    step: int | None = None


class Entry(NamedTuple):
    """One row of the index; `profile` and `verdict` are the manifest's claim."""

    sha256: str
    id: str
    kind: str
    dialect: str
    title: str
    skill: str
    max_turns: int
    manifest_sha256: str
    profile: str | None
    verdict: str | None
    plays: int
    win_rate: float | None
    regret: float | None
    regret_se: float | None


@dataclass(frozen=True, slots=True)
class Query:
    """Which entries are wanted; None asks for no restriction.

    Attributes:
        band: lowest and highest win rate, both included; entries without plays fall outside.
    """

    skill: str | None = None
    kind: str | None = None
    dialect: str | None = None
    band: tuple[float, float] | None = None
    limit: int | None = None

    def where(self) -> tuple[str, list[object]]:
        """The SQL conditions and their values."""
        wanted: list[tuple[str, object]] = []
        for column in ("skill", "kind", "dialect"):
            if (value := getattr(self, column)) is not None:
                wanted.append((f"{column} = ?", value))
        if self.band is not None:
            wanted += [("win_rate >= ?", self.band[0]), ("win_rate <= ?", self.band[1])]
        clause = " AND ".join(text for text, _ in wanted) or "1"
        return clause, [value for _, value in wanted]


class Index:
    """The table in `index.sqlite`; each call opens it for itself, so processes can share it.

    Args:
        path: the file.
        patience: seconds to wait for another process that writes.
    """

    def __init__(self, path: Path, *, patience: float = 120) -> None:
        self.path = path
        self.patience = patience

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction that keeps other writers, also of other processes, out until it ends.

        Raises:
            OSError: the directory can't be written, or the disk is full.
            DamagedIndex: the file is no index any more.
            SpadeError: another process holds it for too long.
        """
        try:
            with _transaction(self.path, self.patience) as base:
                yield base
        except sqlite3.Error as error:
            if _names(error, _HOST_FAULTS):
                raise OSError(str(error)) from error
            raise self._unusable(error) from error

    @contextmanager
    def replacing(self) -> Iterator[sqlite3.Connection]:
        """An empty table that takes the place of a damaged index once it is filled.

        Raises:
            OSError: the directory can't be written, or the disk is full; the old one stays.
        """
        descriptor, name = tempfile.mkstemp(prefix=f".{self.path.name}-", dir=self.path.parent)
        os.close(descriptor)
        aside, journal = Path(name), Path(f"{self.path}-journal")
        try:
            with _transaction(aside, self.patience) as base:
                yield base
            aside.chmod(0o644)
            # The old one's journal would be played back into the new one.
            journal.unlink(missing_ok=True)
            aside.replace(self.path)
        except sqlite3.Error as error:
            raise OSError(str(error)) from error
        finally:
            aside.unlink(missing_ok=True)
            Path(f"{aside}-journal").unlink(missing_ok=True)

    def select(self, query: Query) -> list[Entry]:
        """Rows that fit, in the order of their ids."""
        return [Entry(*row) for row in self.columns(query, *Entry._fields)]

    def columns(self, query: Query, *names: str) -> list[tuple[Any, ...]]:
        """Some columns of the rows that fit, in the order of their ids: for long listings."""
        return list(self.streamed(query, *names))

    def streamed(self, query: Query, *names: str) -> Iterator[tuple[Any, ...]]:
        """The same one by one: ten thousand rows that nobody keeps take a third less time."""
        if not set(names) <= set(Entry._fields):
            raise ValueError(f"no such columns among {names}")
        clause, values = query.where()
        limit = -1 if query.limit is None else query.limit
        picked = f"SELECT {', '.join(names)} FROM environments WHERE {clause} ORDER BY id LIMIT ?"
        with self._reading() as base:
            yield from base.execute(picked, [*values, limit])

    def ids(self) -> list[tuple[str, str]]:
        """Id and source hash of every row, in the order of the ids; read from an index alone."""
        with self._reading() as base:
            return base.execute("SELECT id, sha256 FROM environments ORDER BY id").fetchall()

    def lists(self, sha256: str) -> bool:
        """Whether a source has a row."""
        return bool(self._rows("WHERE sha256 = ?", [sha256]))

    def by_hash_prefix(self, prefix: str) -> list[Entry]:
        """Rows whose source hash begins so."""
        return self._rows("WHERE sha256 >= ? AND sha256 < ? || 'g' LIMIT 9", [prefix, prefix])

    def by_id(self, name: str) -> list[Entry]:
        """The row with an id, if there is one."""
        return self._rows("WHERE id = ?", [name])

    def count(self) -> int:
        """Number of rows."""
        with self._reading() as base:
            return int(base.execute("SELECT COUNT(*) FROM environments").fetchone()[0])

    def _rows(self, clause: str, values: Sequence[object]) -> list[Entry]:
        with self._reading() as base:
            rows = base.execute(f"SELECT {_COLUMNS} FROM environments {clause}", list(values))
            return list(map(Entry._make, rows))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """One transaction that reads."""
        try:
            with closing(self._opened()) as base:
                yield base
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _opened(self) -> sqlite3.Connection:
        if not self._unwritten():
            base = self._recovered()
            if base.execute("SELECT 1 FROM sqlite_master").fetchone():
                return base
            base.close()  # its first writer was killed
        base = sqlite3.connect(":memory:")
        base.executescript(_SCHEMA)
        return base

    def _recovered(self) -> sqlite3.Connection:
        """A connection that reads; what a killed writer left is undone, where that is allowed."""
        try:
            return _begun(self.path, "ro", self.patience)
        except sqlite3.OperationalError as error:
            if not _names(error, _LEFT_OPEN):
                raise
        try:
            return _begun(self.path, "rw", self.patience)
        except sqlite3.OperationalError as error:
            if not _names(error, _HOST_FAULTS):
                raise
            raise SpadeError(
                f"a writer of {self.path} was killed midway, and this process may not undo what "
                f"it left there; someone who may write there mends it with: "
                f"spade pool verify {self.path.parent}"
            ) from error

    def _unwritten(self) -> bool:
        # SQLite makes the file empty, and fills it as the first writer commits the table.
        try:
            return self.path.stat().st_size == 0
        except FileNotFoundError:
            return True
        except OSError as error:
            raise SpadeError(f"can't read the index {self.path}: {error.strerror}") from error

    def _unusable(self, error: sqlite3.Error) -> SpadeError:
        pool = self.path.parent
        if _names(error, ("SQLITE_BUSY", "SQLITE_LOCKED")):
            return SpadeError(f"another process holds the index {self.path}; try again later")
        if _names(error, _HOST_FAULTS):
            return SpadeError(f"can't read the index {self.path} ({error}); mend the disk first")
        return DamagedIndex(
            f"the index {self.path} can't be used ({error}); "
            f"build it again from the files with: spade pool verify --repair {pool}"
        )


@contextmanager
def _transaction(path: Path, patience: float) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, timeout=patience, isolation_level=None)) as base:
        base.executescript(_SCHEMA)
        base.execute("BEGIN IMMEDIATE")
        try:
            yield base
            base.execute("COMMIT")
        except BaseException:
            # On a full disk SQLite has undone it already, and refuses to do so twice.
            if base.in_transaction:
                base.execute("ROLLBACK")
            raise


def _begun(path: Path, mode: str, patience: float) -> sqlite3.Connection:
    address = f"{path.resolve().as_uri()}?mode={mode}"
    base = sqlite3.connect(address, uri=True, timeout=patience, isolation_level=None)
    try:
        # The first look takes the lock: what a killed writer left is found here, and not later.
        base.execute("BEGIN")
        base.execute("SELECT 1 FROM sqlite_master").fetchone()
    except BaseException:
        base.close()
        raise
    return base


def _names(error: sqlite3.Error, names: tuple[str, ...]) -> bool:
    return str(getattr(error, "sqlite_errorname", "")).startswith(names)


def holder_of(base: sqlite3.Connection, name: str) -> str | None:
    """Hash of the source that holds an id."""
    row = base.execute("SELECT sha256 FROM environments WHERE id = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def row_of(spec: EnvSpec, card: Card | None) -> Entry:
    """The row that an environment's files ask for."""
    card = card or Card()
    said = spec.validation
    return Entry(
        spec.sha256,
        spec.id,
        spec.kind,
        spec.dialect,
        spec.title,
        spec.skill,
        spec.max_turns,
        spec.manifest_sha256 or "",
        said.profile if said else None,
        said.verdict if said else None,
        card.plays,
        card.win_rate,
        card.regret,
        card.regret_se,
    )


def insert(base: sqlite3.Connection, spec: EnvSpec, card: Card | None) -> None:
    """Write one environment's row, in place of the one it had.

    Raises:
        sqlite3.IntegrityError: another source holds the id.
    """
    row = row_of(spec, card)
    marks = ", ".join("?" * len(row))
    base.execute("DELETE FROM environments WHERE sha256 = ?", (spec.sha256,))
    base.execute(f"INSERT INTO environments ({_COLUMNS}) VALUES ({marks})", row)
