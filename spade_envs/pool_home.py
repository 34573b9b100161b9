"""One environment's directory in a pool: its card, its claim to an id, and how files get there."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from pathlib import Path

from pydantic import ValidationError

from spade_envs.manifest import read_whole, sealed, to_json, with_suffix
from spade_envs.pool_index import Card, holder_of
from spade_runtime.spec import EnvSpec

FILES = ("env.py", "env.json", "card.json")


def read_card(home: Path) -> Card | None:
    """The card beside a manifest; None if there is none or it can't be read."""
    try:
        return Card.model_validate_json(read_whole(home / "card.json"))
    except (OSError, ValidationError):
        return None


def free_id(base: sqlite3.Connection, spec: EnvSpec) -> EnvSpec:
    """The manifest under an id that no other source holds: its own, or one with a suffix."""
    name = spec.id
    for digits in (8, 16, 64):
        if holder_of(base, name) in (None, spec.sha256):
            break
        name = with_suffix(spec.id, spec.sha256, digits)
    return spec if name == spec.id else sealed(spec.model_copy(update={"id": name}))


def settle(base: sqlite3.Connection, home: Path, stored: EnvSpec) -> EnvSpec:
    """Give the files of an environment that is not listed a free id.

    A writer was killed between its files and its row, and the id may have gone to another since.

    Raises:
        OSError: the manifest can't be written.
    """
    spec = free_id(base, stored)
    if spec is not stored:
        replace_file(home / "env.json", to_json(spec))
    return spec


def replace_file(path: Path, content: str | bytes) -> None:
    """Replace a file in one step, its bytes on the disk before its name is.

    Raises:
        OSError: it can't be written; the old one stays.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(as_bytes(content))
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def as_bytes(content: str | bytes) -> bytes:
    """A source's bytes, also where its text holds lone surrogates."""
    return content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
