"""What this machine's own validator has said: the only verdicts that count (contract.md section 4).

A manifest may claim any verdict. One is believed where the records, kept outside every pool in the
user's state directory, hold it for the same source and the same version of the program.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from spade_runtime import __version__
from spade_runtime.errors import SpadeError
from spade_runtime.spec import BLIND_WIN_LIMIT, CONTRACT_VERSION, Profile, Verdict

_STRICTNESS: tuple[Profile, ...] = ("lenient", "standard", "strict")
_TABLE = """
CREATE TABLE IF NOT EXISTS verdicts (
    sha256 TEXT NOT NULL, profile TEXT NOT NULL, contract INTEGER NOT NULL,
    runtime TEXT NOT NULL, verdict TEXT NOT NULL,
    PRIMARY KEY (sha256, profile, contract, runtime)
)
"""
# Apart from the others: what a laxer limit let pass is no verdict of the profile.
_LAXER = """
CREATE TABLE IF NOT EXISTS laxer (
    sha256 TEXT NOT NULL, profile TEXT NOT NULL, contract INTEGER NOT NULL,
    runtime TEXT NOT NULL, blind_win_limit REAL NOT NULL,
    PRIMARY KEY (sha256, profile, contract, runtime, blind_win_limit)
)
"""


def default_path() -> Path:
    """Where the records are kept: below `XDG_STATE_HOME`, or `~/.local/state`."""
    state = os.environ.get("XDG_STATE_HOME")
    home = Path(state) if state else Path.home() / ".local" / "state"
    return home / "spade" / "verdicts.sqlite"


class Records:
    """The verdicts that this machine has reached itself.

    Args:
        path: the SQLite file; `default_path()` if None.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_path()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=30)) as connection, connection:
            connection.execute(_TABLE)
            connection.execute(_LAXER)
            yield connection

    def remember(self, sha256: str, profile: Profile, verdict: Verdict) -> None:
        """Write down a verdict that the validator has just reached here.

        Raises:
            SpadeError: the file can't be written.
        """
        self._write("verdicts", [(sha256, profile, CONTRACT_VERSION, __version__, verdict)])

    def remember_accepted(
        self, hashes: Iterable[str], profile: Profile, blind_win_limit: float = BLIND_WIN_LIMIT
    ) -> None:
        """Write down what the validator has just accepted here, under a run's own limit.

        A limit above the profile's makes no verdict of the profile; `laxer_limit` tells it.

        Raises:
            SpadeError: the file can't be written.
        """
        lax = blind_win_limit > BLIND_WIN_LIMIT
        said = blind_win_limit if lax else "accepted"
        rows = [(sha256, profile, CONTRACT_VERSION, __version__, said) for sha256 in hashes]
        self._write("laxer" if lax else "verdicts", rows)

    def laxer_limit(self, sha256: str, profile: Profile = "standard") -> float | None:
        """The smallest limit above the profile's under which a source was accepted here, if any."""
        query = (
            "SELECT min(blind_win_limit) FROM laxer WHERE sha256 = ? AND profile = ? "
            "AND contract = ? AND runtime = ?"
        )
        if not self.path.is_file():
            return None
        try:
            with self._open() as connection:
                row = connection.execute(query, (sha256, profile, CONTRACT_VERSION, __version__))
                found = row.fetchone()[0]
        except sqlite3.Error:
            return None
        return None if found is None else float(found)

    def _write(self, table: str, rows: Sequence[tuple[object, ...]]) -> None:
        if not rows:
            return
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._open() as connection:
                command = f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?, ?)"
                connection.executemany(command, rows)
        except (OSError, sqlite3.Error) as error:
            raise SpadeError(
                f"can't write the record of verdicts {self.path}: {error}; "
                "set XDG_STATE_HOME to a directory that can be written"
            ) from error

    def accepted(self, hashes: Iterable[str], profile: Profile = "standard") -> set[str]:
        """Those of the given sources that were accepted here in a profile, or a stricter one.

        Records that are missing or can't be read hold nothing.
        """
        wanted = set(hashes)
        enough = _STRICTNESS[_STRICTNESS.index(profile) :]
        if not wanted or not self.path.is_file():
            return set()
        query = (
            "SELECT sha256 FROM verdicts WHERE verdict = 'accepted' AND contract = ? "
            f"AND runtime = ? AND profile IN ({', '.join('?' * len(enough))})"
        )
        try:
            with self._open() as connection:
                rows = connection.execute(query, (CONTRACT_VERSION, __version__, *enough))
                return {row[0] for row in rows} & wanted
        except sqlite3.Error:
            return set()

    def holds(self, sha256: str, profile: Profile = "standard") -> bool:
        """Whether one source was accepted here in a profile, or a stricter one."""
        return sha256 in self.accepted([sha256], profile)
