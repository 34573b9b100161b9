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
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from spade_envs.manifest import read_manifest, require_contract, sealed, source_hash, to_json
from spade_envs.pool_audit import Problem, audit, read_card, repair
from spade_envs.pool_index import Card, Entry, Index, Query, holder_of, insert
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
        if not marker.is_file():
            if not create:
                self._refuse_missing()
            self._create(marker)
        try:
            version = json.loads(marker.read_bytes()).get("contract_version")
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
            _write(marker, _marker_text())

    def __len__(self) -> int:
        return self.index.count()

    def __contains__(self, sha256: str) -> bool:
        return (self.path(sha256) / "env.json").is_file()

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
            InvalidEnvironment: the manifest belongs to another source.
            SpadeError: the directory can't be written; nothing was added.
        """
        return self.add_many([(source, spec, card)])[0]

    def add_many(self, items: Iterable[tuple[str | bytes, EnvSpec, Card | None]]) -> list[EnvSpec]:
        """Add several environments under one lock of the index."""
        rows = [(_bytes(source), spec, card) for source, spec, card in items]
        for data, spec, _ in rows:
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
            stored = read_manifest(home / "env.json", sha256=spec.sha256)
            card = card or read_card(home)
        else:
            if holder_of(base, spec.id) not in (None, spec.sha256):
                spec = spec.model_copy(update={"id": with_suffix(spec.id, spec.sha256)})
            stored = sealed(spec)
            self._move_in(home, data, stored)
        if card is not None:
            _write(home / "card.json", card.model_dump_json(indent=2) + "\n")
        insert(base, stored, card)
        return stored

    def _move_in(self, home: Path, data: bytes, spec: EnvSpec) -> None:
        incoming = self.root / INCOMING
        incoming.mkdir(exist_ok=True)
        home.parent.mkdir(exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f"{spec.sha256[:8]}-", dir=incoming))
        try:
            _write(aside / "env.py", data)
            _write(aside / "env.json", to_json(spec))
            aside.chmod(0o755)
            aside.rename(home)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise

    def spec(self, sha256: str) -> EnvSpec:
        """The manifest of a source, its seal checked."""
        return read_manifest(self.path(sha256) / "env.json", sha256=sha256)

    def source(self, sha256: str) -> str:
        """The text of a source, its hash checked.

        Raises:
            InvalidEnvironment: it is missing or was changed.
        """
        file = self.path(sha256) / "env.py"
        try:
            data = file.read_bytes()
        except OSError as error:
            raise InvalidEnvironment(f"{file}: can't read it: {error.strerror}") from error
        if (seen := source_hash(data)) != sha256:
            raise InvalidEnvironment(
                f"{file}: the source was changed or only partly written: its hash is {seen}. "
                f"Remove {file.parent} and add the environment again"
            )
        return data.decode("utf-8")

    def card(self, sha256: str) -> Card | None:
        """What was measured about a source, if anything was."""
        return read_card(self.path(sha256))

    def measure(self, sha256: str, card: Card) -> None:
        """Replace the card of a source."""
        spec = self.spec(sha256)
        with _writing(self.root), self.index.writing() as base:
            _write(self.path(sha256) / "card.json", card.model_dump_json(indent=2) + "\n")
            insert(base, spec, card)

    def entries(self, query: Query | None = None) -> list[Entry]:
        """Rows of the index, in the order of their ids; reads no source and no manifest."""
        return self.index.select(query or Query())

    def find(self, name: str) -> Entry:
        """The entry with an id or with a hash that begins so (six digits or more).

        Raises:
            UsageError: none fits, or several do.
        """
        found = self.index.by_id(name)
        if not found and len(name) >= 6 and set(name) <= set("0123456789abcdef"):
            found = self.index.by_hash_prefix(name)
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(entry.sha256[:12] for entry in found[:4])
            raise UsageError(f"several sources begin with {name}: {listed}; give more digits")
        near = get_close_matches(name, [known for known, _ in self.index.ids()], n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"`spade pool ls {self.root}` lists them"
        raise UsageError(f"the pool {self.root} has no environment {name!r}; {hint}")

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
        rows = [
            LockedEnvironment(
                id=entry.id, sha256=entry.sha256, manifest_sha256=entry.manifest_sha256
            )
            for entry in self.entries()
        ]
        text = PoolLock(environments=rows).model_dump_json(indent=1)
        with _writing(self.root):
            _write(self.root / LOCK, text + "\n")
        return self.root / LOCK


def with_suffix(name: str, sha256: str) -> str:
    """An id with eight digits of the hash, for where another source holds the plain one.

    >>> with_suffix("spade/Coin-v0", "1234567890")
    'spade/Coin.12345678-v0'
    """
    stem, dash, version = name.rpartition("-v")
    return f"{stem}.{sha256[:8]}{dash}{version}"


def _marker_text() -> str:
    return json.dumps({"contract_version": CONTRACT_VERSION}) + "\n"


def _bytes(content: str | bytes) -> bytes:
    return content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content


def _write(path: Path, content: str | bytes) -> None:
    """Replace a file in one step, its bytes on the disk before its name is."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(_bytes(content))
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def _writing(root: Path) -> Iterator[None]:
    """Turn what the file system says into an error for people."""
    try:
        yield
    except OSError as error:
        raise SpadeError(
            f"can't write to the pool {root}: {error.strerror or error}; what was being added is "
            "not in it. Free some space or mend the permissions, then try again"
        ) from error
