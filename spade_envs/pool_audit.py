"""Looks for what can go wrong in a pool: torn writes, changed files, an index that lags behind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from spade_envs.manifest import read_manifest, require_contract, source_hash
from spade_envs.pool_index import Card, Index, Query, holder_of, insert
from spade_envs.pool_lock import PoolLock
from spade_runtime.errors import InvalidEnvironment, SpadeError, UsageError

_HEX = set("0123456789abcdef")


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
        for left in _children(root / ".incoming")
    ]
    sound: dict[str, str] = {}
    for home in _homes(root):
        found = _check_home(home)
        problems += found
        if not found:
            sound[home.name] = str(read_manifest(home / "env.json").manifest_sha256)
    problems += _strays(root)
    problems += _compare_index(index, sound, {home.name for home in _homes(root)})
    problems += _compare_lock(root / "pool.lock", sound)
    return problems


def repair(root: Path, index: Index) -> None:
    """Remove interrupted additions and build the index again from the sound files."""
    try:
        _rebuild(root, index)
    except SpadeError:  # the file is no SQLite database any more
        index.path.unlink(missing_ok=True)
        _rebuild(root, index)


def _rebuild(root: Path, index: Index) -> None:
    # Additions hold the index while they run, so what lies in the way now was left behind.
    with index.writing() as base:
        for left in _children(root / ".incoming"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        base.execute("DELETE FROM environments")
        for home in _homes(root):
            if _check_home(home):
                continue
            spec = read_manifest(home / "env.json")
            if holder_of(base, spec.id) is None:  # a second claim shows as unlisted in the audit
                insert(base, spec, read_card(home))


def read_card(home: Path) -> Card | None:
    """The card beside a manifest; None if there is none or it can't be read."""
    try:
        return Card.model_validate_json((home / "card.json").read_bytes())
    except (OSError, ValidationError):
        return None


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _homes(root: Path) -> Iterator[Path]:
    for shelf in _children(root):
        if shelf.is_dir() and len(shelf.name) == 2 and set(shelf.name) <= _HEX:
            yield from (home for home in _children(shelf) if home.is_dir())


def _strays(root: Path) -> Iterator[Problem]:
    known = {"pool.json", "pool.lock", "index.sqlite", "index.sqlite-journal", ".incoming"}
    for path in _children(root):
        shelf = path.is_dir() and len(path.name) == 2 and set(path.name) <= _HEX
        if not shelf and path.name not in known:
            yield Problem("stray", path, "this belongs to no environment of the pool")


def _check_home(home: Path) -> list[Problem]:
    source, manifest = home / "env.py", home / "env.json"
    problems = [
        Problem("torn", file, "the file is missing or empty: a write was cut off")
        for file in (source, manifest)
        if not file.is_file() or not file.stat().st_size
    ]
    if problems:
        return problems
    if (seen := source_hash(source.read_bytes())) != home.name:
        problems.append(Problem("tampered", source, f"the hash is {seen}, not {home.name}"))
    try:
        read_manifest(manifest, sha256=home.name)
    except UsageError as error:
        problems.append(Problem("newer", manifest, str(error)))
    except InvalidEnvironment as error:
        torn = "not JSON" in str(error)
        problems.append(Problem("torn" if torn else "tampered", manifest, str(error)))
    return problems


def _compare_index(index: Index, sound: dict[str, str], present: set[str]) -> Iterator[Problem]:
    listed = {entry.sha256: entry.manifest_sha256 for entry in index.select(Query())}
    for sha256 in sorted(listed.keys() - present):
        yield Problem("index", index.path, f"lists {sha256}, which is not in the pool")
    for sha256, seal in sorted(sound.items()):
        if sha256 not in listed:
            yield Problem("index", index.path, f"does not list {sha256}")
        elif listed[sha256] != seal:
            yield Problem("index", index.path, f"lists another manifest of {sha256}")


def _compare_lock(path: Path, sound: dict[str, str]) -> Iterator[Problem]:
    if not path.is_file():
        return
    try:
        raw = json.loads(path.read_bytes())
        require_contract(raw["contract_version"], str(path))
        rows = PoolLock.model_validate(raw).environments
        locked = {row.sha256: row.manifest_sha256 for row in rows}
    except UsageError as error:
        yield Problem("newer", path, str(error))
        return
    except (ValueError, KeyError, TypeError):
        yield Problem("torn", path, "the lock file can't be read; write it again")
        return
    for sha256 in sorted(locked.keys() | sound.keys()):
        if sha256 not in sound:
            yield Problem("lock", path, f"locks {sha256}, which is missing or unsound here")
        elif sha256 not in locked:
            yield Problem("lock", path, f"does not lock {sha256}, added since")
        elif locked[sha256] != sound[sha256]:
            yield Problem("lock", path, f"locks another manifest of {sha256}")
