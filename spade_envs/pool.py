"""A content-addressed store of environments: `<sha256[:2]>/<sha256>/{env.py,env.json}`.

>>> import tempfile
>>> from spade_runtime.spec import EnvSpec
>>> source = "class CoinEnv(TextEnv): ..."
>>> spec = EnvSpec(id="spade/Coin-v0", sha256=source_hash(source), kind="game",
...                title="Toss a coin", skill="optimization")
>>> with tempfile.TemporaryDirectory() as folder:
...     pool = Pool(folder, create=True)
...     _ = pool.add(source, spec)
...     pool.find("spade/Coin-v0").title, pool.source(spec.sha256) == source, pool.verify()
('Toss a coin', True, [])
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from spade_envs.manifest import (
    ID,
    MOST_BYTES,
    is_hash,
    parsed,
    read_manifest,
    read_whole,
    require_contract,
    require_id,
    sealed,
    source_hash,
    to_json,
)
from spade_envs.pool_audit import Problem, audit, repair
from spade_envs.pool_home import as_bytes, free_id, read_card, replace_file, settle
from spade_envs.pool_index import Card, Entry, Index, Query, insert
from spade_envs.pool_lock import LockedEnvironment, PoolLock
from spade_runtime.errors import InvalidEnvironment, SpadeError, UsageError
from spade_runtime.spec import CONTRACT_VERSION, EnvSpec

MARKER = "pool.json"
LOCK = "pool.lock"
INCOMING = ".incoming"


class Pool:
    """A directory of environments that several processes may add to at once.

    An addition is written aside and moved into its place in one step, so that a reader never sees
    half of it. Whatever is read is checked against its hash.

    Args:
        root: the pool's directory.
        create: make it if it is not there.

    Raises:
        UsageError: no pool there, or one that a newer contract wrote.
    """

    def __init__(self, root: str | Path, *, create: bool = False) -> None:
        self.root = Path(root)
        self.index = Index(self.root / "index.sqlite")
        marker = self.root / MARKER
        if not _exists(self.root, marker):
            if not create:
                self._refuse_missing()
            self._create(marker)
        try:
            version = parsed(read_whole(marker)).get("contract_version")
        except OSError as error:
            raise UsageError(f"can't read {marker}: {error.strerror}") from error
        except (ValueError, AttributeError) as error:
            raise UsageError(f"{marker} is damaged; write {_marker_text()!r} into it") from error
        require_contract(version, str(marker))

    def _refuse_missing(self) -> NoReturn:
        what = "no pool" if self.root.is_dir() else "nothing"
        raise UsageError(
            f"there is {what} at {self.root}; make one with: spade pool import FOLDER {self.root}"
        )

    def _create(self, marker: Path) -> None:
        if self.root.is_dir() and any(p.name[0] != "." for p in self.root.iterdir()):
            raise UsageError(
                f"{self.root} holds other files and no {MARKER}: name an empty or new directory"
            )
        with _writing(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            replace_file(marker, _marker_text())

    def __len__(self) -> int:
        return self.index.count()

    def __contains__(self, sha256: str) -> bool:
        return is_hash(sha256) and (self.path(sha256) / "env.json").is_file()

    def path(self, sha256: str) -> Path:
        """Directory of a source, whether it is there or not."""
        return self.root / sha256[:2] / sha256

    def add(self, source: str | bytes, spec: EnvSpec, *, card: Card | None = None) -> EnvSpec:
        """Add one environment; adding it again changes nothing.

        Args:
            source: text or bytes of the source.
            spec: its manifest; an id that another source holds gets the hash as a suffix.
            card: what is known about how well it can be learned from.

        Returns:
            The manifest as it stands in the pool, sealed.

        Raises:
            InvalidEnvironment: the manifest belongs to another source, or its id is none.
            SpadeError: the directory can't be written; it is not listed, and adding it again
                goes on from there.
        """
        return self.add_many([(source, spec, card)])[0]

    def add_many(self, items: Iterable[tuple[str | bytes, EnvSpec, Card | None]]) -> list[EnvSpec]:
        """Add several environments under one lock of the index."""
        rows = [(as_bytes(source), spec, card) for source, spec, card in items]
        for data, spec, _ in rows:
            require_id(spec.id)
            if len(data) > MOST_BYTES:
                raise InvalidEnvironment(
                    f"the source of {spec.id} is {len(data)} bytes long; a pool takes {MOST_BYTES}"
                )
            if source_hash(data) != spec.sha256:
                raise InvalidEnvironment(
                    f"the manifest of {spec.id} describes the source {spec.sha256}, "
                    f"this one is {source_hash(data)}"
                )
        with _writing(self.root), self.index.writing() as base:
            return [self._place(base, data, spec, card) for data, spec, card in rows]

    def _place(
        self, base: sqlite3.Connection, data: bytes, spec: EnvSpec, card: Card | None
    ) -> EnvSpec:
        home = self.path(spec.sha256)
        if (home / "env.json").is_file():
            stored = settle(base, home, self.spec(spec.sha256))
            card = card or read_card(home)
        else:
            stored = sealed(free_id(base, spec))
            self._move_in(home, data, stored)
        if card is not None:
            replace_file(home / "card.json", card.model_dump_json(indent=2) + "\n")
        insert(base, stored, card)
        return stored

    def listed(self, sha256: str) -> EnvSpec:
        """The manifest of a source whose files are there, which is listed from now on.

        A writer that was killed leaves files without a row; this puts the row in.

        Raises:
            InvalidEnvironment: the manifest is missing or was changed.
            SpadeError: the directory can't be written.
        """
        stored = self.spec(sha256)
        if self.index.lists(sha256):
            return stored
        with _writing(self.root), self.index.writing() as base:
            home = self.path(sha256)
            stored = settle(base, home, self.spec(sha256))
            insert(base, stored, read_card(home))
        return stored

    def _move_in(self, home: Path, data: bytes, spec: EnvSpec) -> None:
        incoming = self.root / INCOMING
        incoming.mkdir(exist_ok=True)
        home.parent.mkdir(exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f"{spec.sha256[:8]}-", dir=incoming))
        try:
            replace_file(aside / "env.py", data)
            replace_file(aside / "env.json", to_json(spec))
            aside.chmod(0o755)
            aside.rename(home)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise

    def spec(self, sha256: str) -> EnvSpec:
        """The manifest of a source, its seal checked.

        Raises:
            InvalidEnvironment: it is missing or was changed.
        """
        _require_hash(sha256)
        return read_manifest(self.path(sha256) / "env.json", sha256=sha256)

    def source(self, sha256: str) -> str:
        """The text of a source, its hash checked.

        Raises:
            InvalidEnvironment: it is missing or was changed.
        """
        _require_hash(sha256)
        file = self.path(sha256) / "env.py"
        try:
            data = read_whole(file)
        except OSError as error:
            raise InvalidEnvironment(f"{file}: can't read it: {error.strerror}") from error
        if (seen := source_hash(data)) != sha256:
            raise InvalidEnvironment(
                f"{file}: the source was changed or only partly written: its hash is {seen}. "
                f"Remove {file.parent} and add the environment again"
            )
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidEnvironment(f"{file}: not UTF-8 (byte {error.start})") from error

    def card(self, sha256: str) -> Card | None:
        """What was measured about a source, if anything was."""
        return read_card(self.path(sha256)) if is_hash(sha256) else None

    def measure(self, sha256: str, card: Card) -> None:
        """Replace the card of a source."""
        self.spec(sha256)
        with _writing(self.root), self.index.writing() as base:
            home = self.path(sha256)
            spec = settle(base, home, self.spec(sha256))
            replace_file(home / "card.json", card.model_dump_json(indent=2) + "\n")
            insert(base, spec, card)

    def entries(self, query: Query | None = None) -> list[Entry]:
        """Rows of the index, in the order of their ids; reads no source and no manifest."""
        return self.index.select(query or Query())

    def find(self, name: str) -> Entry:
        """The entry with an id or with a hash that begins so (six digits or more).

        Raises:
            UsageError: none fits, or several do.
        """
        found = self.index.by_id(name) if ID.fullmatch(name) else []
        if not found and len(name) >= 6 and set(name) <= set("0123456789abcdef"):
            found = self.index.by_hash_prefix(name)
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(entry.sha256[:12] for entry in found[:4])
            raise UsageError(f"several sources begin with {name}: {listed}; give more digits")
        near = get_close_matches(name, [known for known, _ in self.index.ids()], n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"`spade pool ls {self.root}` lists them"
        raise UsageError(f"the pool {self.root} has no environment {name!r:.200}; {hint}")

    def verify(self) -> list[Problem]:
        """Check every file, the index and the lock file; says what is wrong, changes nothing."""
        return audit(self.root, self.index)

    def repair(self) -> list[Problem]:
        """Clear interrupted additions and build the index again; returns what remains wrong."""
        with _writing(self.root):
            repair(self.root, self.index)
        return self.verify()

    def lock(self) -> Path:
        """Write `pool.lock`: id, source hash and seal of each environment.

        Committed beside a run's configuration it pins the pool; `verify` compares with it.
        """
        with _writing(self.root), self.index.writing():
            rows = [
                LockedEnvironment(
                    id=entry.id, sha256=entry.sha256, manifest_sha256=entry.manifest_sha256
                )
                for entry in self.entries()
            ]
            text = PoolLock(environments=rows).model_dump_json(indent=1)
            replace_file(self.root / LOCK, text + "\n")
        return self.root / LOCK


def _marker_text() -> str:
    return json.dumps({"contract_version": CONTRACT_VERSION}) + "\n"


def _exists(root: Path, marker: Path) -> bool:
    """Whether a pool is there; a place that can't be one is refused.

    Raises:
        UsageError: a file, a link to nothing, a name too long, no permission to look.
    """
    try:
        if not stat.S_ISDIR(root.stat().st_mode):
            raise UsageError(f"{str(root)!r} is a file; a pool is a directory")
        return stat.S_ISREG(marker.stat().st_mode)
    except FileNotFoundError:
        if root.is_symlink():
            raise UsageError(f"{str(root)!r} is a link to something that is not there") from None
        return False
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{str(root)!r:.200} can't be a pool: {said}") from error


def _require_hash(sha256: str) -> None:
    if not is_hash(sha256):
        raise InvalidEnvironment(f"{sha256!r:.80} is no hash of a source: 64 hexadecimal digits")


@contextmanager
def _writing(root: Path) -> Iterator[None]:
    """Turn what the file system says into an error for people."""
    try:
        yield
    except OSError as error:
        raise SpadeError(
            f"can't write to the pool {root}: {error.strerror or error}; what was being added is "
            "not listed in it. Free some space or mend the permissions, then run the same again"
        ) from error
