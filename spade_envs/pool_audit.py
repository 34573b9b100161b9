"""Looks for what can go wrong in a pool: torn writes, changed files, an index that lags behind."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from spade_envs.manifest import (
    is_hash,
    parsed,
    read_manifest,
    read_whole,
    require_contract,
    source_hash,
)
from spade_envs.pool_home import FILES, read_card, settle
from spade_envs.pool_index import Card, DamagedIndex, Entry, Index, Query, insert, row_of
from spade_envs.pool_lock import PoolLock
from spade_runtime.errors import InvalidEnvironment, SpadeError, UsageError

_HEX = set("0123456789abcdef")
_ASIDE = re.compile(r"\.(.+)-[a-z0-9_]{8}(?:-journal)?")
_ROOM = {"pool.json", "pool.lock", "index.sqlite", "index.sqlite-journal", ".incoming"}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a pool.

    Attributes:
        kind: `interrupted` an addition that stopped midway (nothing of it counts), `torn` a file
            that is missing, empty or cut, `tampered` one whose hash does not match, `newer` a
            manifest of a newer contract, `index` the index and the files disagree, `lock` the
            lock file and the files disagree, `stray` a file that does not belong there.
        path: where.
        message: what was expected and what was seen.
    """

    kind: Literal["interrupted", "torn", "tampered", "newer", "index", "lock", "stray"]
    path: Path
    message: str


def audit(root: Path, index: Index) -> list[Problem]:
    """Check a whole pool; reads every file."""
    problems = [
        Problem("interrupted", left, "an addition stopped here before it was complete")
        for left in _leavings(root)
    ]
    sound: dict[str, Entry] = {}
    for home in _homes(root):
        found = _check_home(home)
        problems += found
        if _is_sound(found):
            sound[home.name] = row_of(read_manifest(home / "env.json"), read_card(home))
    problems += _strays(root)
    problems += _compare_index(index, sound, {home.name for home in _homes(root)})
    seals = {sha256: entry.manifest_sha256 for sha256, entry in sound.items()}
    problems += _compare_lock(root / "pool.lock", seals)
    return problems


def repair(root: Path, index: Index) -> None:
    """Remove interrupted additions and build the index again from the sound files.

    The index stays as it was until the new one is complete: on a full disk nothing is lost.

    Raises:
        OSError: the directory can't be written, or the disk is full.
    """
    try:
        with index.writing() as base:
            # Additions hold the index while they run, so what lies in the way now was left behind.
            _clear(root)
            _fill(base, root)
        return
    except DamagedIndex:
        with index.replacing() as base:
            _fill(base, root)
    with index.writing():
        _clear(root)


def _clear(root: Path) -> None:
    for left in _leavings(root):
        shutil.rmtree(left) if left.is_dir() else left.unlink()


def _fill(base: sqlite3.Connection, root: Path) -> None:
    """Write all rows anew. Of two sources with one id, the one that was listed with it keeps it."""
    held = dict(base.execute("SELECT sha256, id FROM environments").fetchall())
    base.execute("DELETE FROM environments")
    late: list[Path] = []
    for home in _homes(root):
        if not _is_sound(_check_home(home)):
            continue
        spec = read_manifest(home / "env.json")
        if held.get(spec.sha256) == spec.id:
            insert(base, spec, read_card(home))
        else:
            late.append(home)
    for home in late:
        insert(base, settle(base, home, read_manifest(home / "env.json")), read_card(home))


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _is_shelf(path: Path) -> bool:
    return len(path.name) == 2 and set(path.name) <= _HEX and path.is_dir()


def _homes(root: Path) -> Iterator[Path]:
    """The directories of environments, each on the shelf that its hash names."""
    for shelf in filter(_is_shelf, _children(root)):
        yield from (home for home in _children(shelf) if _is_home(home))


def _is_home(path: Path) -> bool:
    return is_hash(path.name) and path.name[:2] == path.parent.name and path.is_dir()


def _leavings(root: Path) -> Iterator[Path]:
    """What a killed writer left: files that were to be moved into their places."""
    yield from _children(root / ".incoming")
    yield from (path for path in _children(root) if _is_aside(path, _ROOM))
    for home in _homes(root):
        yield from (path for path in _children(home) if _is_aside(path, FILES))


def _is_aside(path: Path, names: Collection[str]) -> bool:
    """Whether a file was written beside one of these names, to take its place."""
    found = _ASIDE.fullmatch(path.name)
    return found is not None and found[1] in names


def _strays(root: Path) -> Iterator[Problem]:
    said = "this belongs to no environment of the pool"
    for path in _children(root):
        if _is_shelf(path):
            for home in _children(path):
                if not _is_home(home):
                    moved = is_hash(home.name) and home.is_dir()
                    where = f"its place is {root / home.name[:2] / home.name}" if moved else said
                    yield Problem("stray", home, where)
        elif path.name not in _ROOM and not _is_aside(path, _ROOM):
            yield Problem("stray", path, said)


def _is_sound(problems: Sequence[Problem]) -> bool:
    """Whether an environment can be used: a strange file or a bad card beside it is no matter."""
    return all(problem.path.name not in ("env.py", "env.json") for problem in problems)


def _check_home(home: Path) -> list[Problem]:
    source, manifest = home / "env.py", home / "env.json"
    problems = [
        Problem("stray", file, "this is no file of an environment")
        for file in _children(home)
        if file.name not in FILES and not _is_aside(file, FILES)
    ]
    torn = [
        Problem("torn", file, "the file is missing or empty: a write was cut off")
        for file in (source, manifest)
        if not file.is_file() or not file.stat().st_size
    ]
    if torn:
        return problems + torn
    return [*problems, *_check_source(source), *_check_manifest(manifest), *_check_card(home)]


def _check_source(source: Path) -> Iterator[Problem]:
    sha256 = source.parent.name
    try:
        seen = source_hash(read_whole(source))
    except OSError as error:
        yield Problem("tampered", source, f"can't read it: {error.strerror}")
        return
    if seen != sha256:
        yield Problem("tampered", source, f"the hash is {seen}, not {sha256}")


def _check_manifest(manifest: Path) -> Iterator[Problem]:
    try:
        read_manifest(manifest, sha256=manifest.parent.name)
    except UsageError as error:
        yield Problem("newer", manifest, str(error))
    except InvalidEnvironment as error:
        torn = "not JSON" in str(error)
        yield Problem("torn" if torn else "tampered", manifest, str(error))


def _check_card(home: Path) -> Iterator[Problem]:
    path = home / "card.json"
    if not path.exists():
        return
    try:
        Card.model_validate_json(read_whole(path))
    except OSError as error:
        yield Problem("tampered", path, f"can't read it: {error.strerror}")
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the card"
        yield Problem("tampered", path, f"{place}: {first['msg']}; remove it or measure again")


def _compare_index(index: Index, sound: dict[str, Entry], present: set[str]) -> Iterator[Problem]:
    try:
        listed = {entry.sha256: entry for entry in index.select(Query())}
    except SpadeError as error:
        yield Problem("index", index.path, str(error))
        return
    for sha256 in sorted(listed.keys() - present):
        yield Problem("index", index.path, f"lists {sha256}, which is not in the pool")
    for sha256, entry in sorted(sound.items()):
        if sha256 not in listed:
            yield Problem("index", index.path, f"does not list {sha256}")
        elif listed[sha256] != entry:
            row = listed[sha256]
            wrong = [name for name in Entry._fields if getattr(row, name) != getattr(entry, name)]
            yield Problem("index", index.path, f"lists another {', '.join(wrong)} of {sha256}")


def _compare_lock(path: Path, sound: dict[str, str]) -> Iterator[Problem]:
    if not path.is_file():
        return
    try:
        raw = parsed(read_whole(path))
        require_contract(raw["contract_version"], str(path))
        rows = PoolLock.model_validate(raw).environments
        locked = {row.sha256: row.manifest_sha256 for row in rows}
    except UsageError as error:
        yield Problem("newer", path, str(error))
        return
    except (OSError, ValueError, KeyError, TypeError):
        yield Problem("torn", path, "the lock file can't be read; write it again")
        return
    for sha256 in sorted(locked.keys() | sound.keys()):
        if sha256 not in sound:
            yield Problem("lock", path, f"locks {sha256}, which is missing or unsound here")
        elif sha256 not in locked:
            yield Problem("lock", path, f"does not lock {sha256}, added since")
        elif locked[sha256] != sound[sha256]:
            yield Problem("lock", path, f"locks another manifest of {sha256}")
