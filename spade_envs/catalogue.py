"""Finds environments by what a person types: an id, a class name, a file, or a hash in a pool."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, NamedTuple

from spade_envs import suite
from spade_envs.pool import Pool
from spade_envs.pool_index import Card
from spade_runtime.errors import UsageError
from spade_runtime.spec import EnvSpec

_ID = re.compile(r"(?:spade_envs:)?(?:spade/)?([A-Za-z0-9_.]+?)(?:Env)?(?:-v([0-9]+))?")


class Found(NamedTuple):
    """One environment.

    Attributes:
        path: the file that holds its source.
        origin: where it was found.
        spec: its manifest; None for a bare file, which has to be opened first.
        card: what a pool knows about how well it can be learned from.
    """

    path: Path
    origin: Literal["suite", "pool", "file"]
    spec: EnvSpec | None = None
    card: Card | None = None


def hint_of(found: Found) -> str | None:
    """The hint that comes with an environment: in its manifest, or beside its file."""
    if found.spec is not None and found.spec.hint is not None:
        return found.spec.hint
    beside = found.path.with_suffix(".hint.txt")
    return beside.read_text("utf-8", "replace").strip() if beside.is_file() else None


def turns_text(count: int) -> str:
    """A limit of turns in words.

    >>> turns_text(1), turns_text(16)
    ('1 turn', 'at most 16 turns')
    """
    return "1 turn" if count == 1 else f"at most {count} turns"


def find(name: str, pool: Pool | None = None) -> Found:
    """Find one environment.

    Args:
        name: `spade/RollingDie-v0`, `RollingDie`, a file, or the beginning of a hash in the pool.
        pool: searched before the suite.

    Raises:
        UsageError: nothing has that name, or the file is not there.
    """
    path = Path(name)
    if name.endswith(".py") or path.is_file():
        if not path.is_file():
            raise UsageError(f"there is no file {name}; `spade list` shows what ships with it")
        return Found(path, "file")
    if path.is_dir():
        raise UsageError(f"{name} is a directory; name one environment's file in it")
    if pool is not None:
        return _in_pool(name, pool)
    return _in_suite(name)


def _in_pool(name: str, pool: Pool) -> Found:
    typed = _ID.fullmatch(name)
    full = f"spade/{typed[1]}-v{typed[2] or 0}" if typed else name
    entry = pool.find(full if pool.index.by_id(full) else name)
    home = pool.path(entry.sha256)
    pool.source(entry.sha256)  # refuses one that was changed
    return Found(home / "env.py", "pool", pool.spec(entry.sha256), pool.card(entry.sha256))


def _in_suite(name: str) -> Found:
    specs = suite.specs()
    wanted = _ID.fullmatch(name)
    if wanted is None:
        raise UsageError(f"{name!r} is no id; one looks like spade/RollingDie-v0")
    by_name = {class_name.removesuffix("Env"): class_name for class_name in specs}
    stem, version = wanted.groups()
    if stem in by_name:
        spec = specs[by_name[stem]]
        have = spec.id.rpartition("-v")[2]
        if version not in (None, have):
            raise UsageError(f"{name!r}: there is no version {version}; there is {spec.id!r}")
        return Found(suite.paths()[by_name[stem]], "suite", spec)
    lowered = {known.lower(): known for known in by_name}
    near = get_close_matches(stem.lower(), lowered, n=1)
    hint = (
        f"did you mean {specs[by_name[lowered[near[0]]]].id!r}?"
        if near
        else "`spade list` shows them"
    )
    raise UsageError(f"there is no environment {name!r}; {hint}")
