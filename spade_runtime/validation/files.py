"""Finds the files that a call of the validator means, and reads them without being led astray."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spade_runtime.errors import UsageError

HINT_SUFFIX = ".hint.txt"
HINT_BYTES = 16384
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Target:
    """One file to validate.

    Attributes:
        path: what the report calls it: the argument joined with the file's path below it.
        file: where it lies.
    """

    path: str
    file: Path


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source as it was read.

    Attributes:
        data: its bytes, cut after `limit + 1` where it is larger.
        size: its full size in bytes.
        sha256: hash of the whole file.
    """

    data: bytes
    size: int
    sha256: str


def _below(folder: Path) -> Iterator[str]:
    """Paths of `*.py` below a folder, relative to it; links to folders are not followed.

    An `__init__.py` makes a package of the folder and holds no environment: it is left out.
    """
    for place, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "__pycache__")
        for name in names:
            if name.endswith(".py") and not name.startswith(".") and name != "__init__.py":
                yield str(Path(place, name).relative_to(folder))


def _printable(path: str) -> str:
    """A path whose bytes may be no UTF-8, as text that can be written."""
    return path.encode("utf-8", "backslashreplace").decode()


def collect(arguments: Sequence[str | Path]) -> list[Target]:
    """List the files that the arguments name, in sorted path order and each once.

    Raises:
        UsageError: an argument does not exist, or a folder holds no Python file.
    """
    found: dict[str, Target] = {}
    for argument in arguments:
        given = os.fspath(argument)
        path = Path(given)
        try:
            is_folder = stat.S_ISDIR(path.stat().st_mode)
        except FileNotFoundError:
            raise UsageError(
                f"there is no file or folder {given!r}; check the path (a link may point nowhere)"
            ) from None
        except OSError as problem:
            raise UsageError(f"can't look at {given!r}: {problem.strerror}") from None
        except ValueError as problem:
            raise UsageError(f"{given!r} is no path: {problem}") from None
        if not is_folder:
            found.setdefault(given, Target(_printable(given), path))
            continue
        names = list(_below(path))
        if not names:
            raise UsageError(
                f"the folder {given!r} holds no Python file; an environment is one .py file, "
                "and `spade new NAME` writes one to start from"
            )
        for name in names:
            # Joined as text: Path would drop a leading "./" of the argument.
            joined = f"{given.rstrip(os.sep) or ''}{os.sep}{name}"
            found.setdefault(joined, Target(_printable(joined), Path(joined)))
    return [found[key] for key in sorted(found)]


def read_source(file: Path, limit: int) -> SourceFile:
    """Read a source; of one larger than `limit` bytes only the beginning is kept.

    Raises:
        UsageError: it can't be read, or is no regular file (a pipe or device would block).
    """
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise UsageError(f"{str(file)!r} is no regular file; name a file that holds Python")
        digest = hashlib.sha256()
        with file.open("rb") as handle:
            data = handle.read(limit + 1)
            digest.update(data)
            size = len(data)
            while size > limit and (block := handle.read(_BLOCK)):
                digest.update(block)
                size += len(block)
    except OSError as problem:
        raise UsageError(
            f"can't read {str(file)!r}: {problem.strerror or problem}; "
            "check its permissions and links"
        ) from None
    return SourceFile(data, size, digest.hexdigest())


def read_hint(file: Path) -> str:
    """Read a hint.

    Raises:
        UsageError: it can't be read, is not UTF-8, or is larger than 16 KiB.
    """
    source = read_source(file, HINT_BYTES)
    if source.size > HINT_BYTES:
        raise UsageError(f"the hint {str(file)!r} is larger than {HINT_BYTES} bytes; shorten it")
    try:
        return source.data.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise UsageError(f"the hint {str(file)!r} is not UTF-8; save it as UTF-8") from None


def sibling_hint(file: Path) -> str | None:
    """The text of `<stem>.hint.txt` beside a source, or None."""
    hint = file.with_name(file.stem + HINT_SUFFIX)
    return read_hint(hint) if hint.is_file() else None
