"""What this machine's own validator has said: the only verdicts that count (contract.md section 4).

A manifest may claim any verdict. One is believed where the records, kept outside every pool in the
user's state directory, hold it for the same source and the same version of the program.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from spade_runtime import __version__
from spade_runtime.errors import SpadeError
from spade_runtime.spec import CONTRACT_VERSION, Profile, Verdict

_STRICTNESS: tuple[Profile, ...] = ("lenient", "standard", "strict")
_TABLE = """
CREATE TABLE IF NOT EXISTS verdicts (
    sha256 TEXT NOT NULL, profile TEXT NOT NULL, contract INTEGER NOT NULL,
    runtime TEXT NOT NULL, verdict TEXT NOT NULL,
    PRIMARY KEY (sha256, profile, contract, runtime)
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
            yield connection

    def remember(self, sha256: str, profile: Profile, verdict: Verdict) -> None:
        """Write down a verdict that the validator has just reached here.

        Raises:
            SpadeError: the file can't be written.
        """
        row = (sha256, profile, CONTRACT_VERSION, __version__, verdict)
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._open() as connection:
                connection.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?)", row)
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
