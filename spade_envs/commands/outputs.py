"""Where commands write: tried before the work that fills it, and said where it had to be made."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from spade_runtime.errors import UsageError


@contextmanager
def claimed(path: Path, *, said: bool = True) -> Iterator[None]:
    """Hold the place of a file that long work adds to.

    A folder or disk that can't be written in is found before the work and not after it. Where
    nothing was written, neither an empty file nor an empty folder stays.

    Args:
        path: the file.
        said: whether to tell of a folder that has to be made for it.

    Raises:
        UsageError: it can't be written.
    """
    missing = _missing(path.parent)
    try:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8"):
                pass
        except OSError as error:
            raise UsageError(f"can't write {path}: {error.strerror}; name another file") from error
        if said:
            _say(missing)
        yield
    finally:
        with suppress(OSError):
            if path.stat().st_size == 0:
                path.unlink()
        _remove_empty(missing)


@contextmanager
def telling_of(path: Path, *, said: bool = True) -> Iterator[None]:
    """Say that work made the folder that something goes into: a mistyped name makes one too.

    Where the work fails, no empty folder stays.

    Args:
        path: what the work makes.
        said: False where nobody named the path, so that nobody can have mistyped it.
    """
    missing = _missing(path.parent)
    try:
        yield
    finally:
        _remove_empty(missing)
    if said:
        _say(missing)


def _missing(folder: Path) -> list[Path]:
    """The folders that have to be made, the outermost first."""
    return [place for place in reversed([folder, *folder.parents]) if not place.exists()]


def _say(made: Sequence[Path]) -> None:
    if made:
        print(f"spade: made the folder {made[-1]}", file=sys.stderr)


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in reversed(folders):
        with suppress(OSError):
            folder.rmdir()
