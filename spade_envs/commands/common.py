"""What several commands share: plain tables, safe text, and the choice of a pool."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from spade_runtime.errors import EnvFault, InvalidEnvironment, SpadeError, UsageError
from spade_runtime.taxonomy import GAME_SKILLS, TOOL_SKILLS
from spade_runtime.validation.text import visible

if TYPE_CHECKING:
    from spade_envs.pool import Pool


def check_skill(skill: str | None) -> None:
    """Refuse a skill that is not in the taxonomy.

    Raises:
        UsageError: it is none; the message lists those that are.
    """
    known = (*GAME_SKILLS, *TOOL_SKILLS)
    if skill is not None and skill not in known:
        near = get_close_matches(skill, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"skills are {', '.join(known)}"
        raise UsageError(f"there is no skill {skill!r}; {hint}")


def aligned(rows: Sequence[Sequence[object]], heads: Sequence[str]) -> str:
    """Rows as columns of equal width under their heads; texts are made safe to print.

    >>> print(aligned([("north", 1), ("up", 20)], ("way", "steps")))
    way    steps
    north  1
    up     20
    """
    columns = [[head, *_printable(cells)] for head, cells in zip(heads, _turned(rows), strict=True)]
    widths = [max(map(len, column)) for column in columns]
    line = "  ".join(f"{{:<{width}}}" for width in widths).format
    return "\n".join(line(*row).rstrip() for row in zip(*columns, strict=True))


def json_rows(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as a JSON list of objects, one a line.

    >>> print(json_rows(("way", "steps"), [("north", 1), ("up", 20)]))
    [
    {"way":"north","steps":1},
    {"way":"up","steps":20}
    ]
    """
    # Python's own encoder takes a third of a second for ten thousand rows, and dictionaries for
    # this one take longer than the encoding.
    kind = msgspec.defstruct("Row", [(head, Any) for head in heads], gc=False)
    lines = msgspec.json.Encoder().encode_lines([kind(*row) for row in rows])
    # A line's end inside of a text is escaped.
    return "[\n" + lines[:-1].replace(b"\n", b",\n").decode() + "\n]" if lines else "[]"


def _turned(rows: Sequence[Sequence[object]]) -> list[list[str]]:
    return [[str(cell) for cell in column] for column in zip(*rows, strict=True)]


def _printable(cells: list[str], limit: int = 120) -> list[str]:
    """Cells that are safe to print; a column that is so already is not looked at cell by cell."""
    text = "".join(cells)
    risky = any(mark in text for mark in ("::", "##[", "%0"))
    if text.isprintable() and not risky and max(map(len, cells), default=0) <= limit:
        return cells
    return [visible(cell, limit) for cell in cells]


def safe_lines(text: str, limit: int = 4000) -> str:
    """Text of several lines whose control characters are made visible."""
    return "\n".join(visible(line, limit) for line in text.split("\n"))


def counted(number: int, thing: str) -> str:
    """A number of things in words.

    >>> counted(1, "turn"), counted(0, "turn"), counted(1234, "environment")
    ('1 turn', '0 turns', '1,234 environments')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def add_pool(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a pool."""
    parser.add_argument("--pool", type=Path, metavar="DIR", help="look in this pool")


def chosen_pool(arguments: argparse.Namespace) -> Pool | None:
    """The pool that the option names, if it does."""
    if not arguments.pool:
        return None
    from spade_envs.pool import Pool  # loads pydantic, which takes longer than a short listing

    return Pool(arguments.pool)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say whose fault it is where an environment can't be opened, and where to look.

    Raises:
        SpadeError: in the place of a fault or a refusal.
    """
    try:
        yield
    except (EnvFault, InvalidEnvironment) as error:
        code = f"{error.code}: " if isinstance(error, EnvFault) and error.code else ""
        raise SpadeError(
            f"{visible(str(path), 4096)} can't be played: {code}{error}; look closer with: "
            f"spade validate {visible(str(path), 4096)}"
        ) from error


def seed_number(text: str) -> int:
    """A reset seed from a command line."""
    number = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= number < 2**31:
        raise argparse.ArgumentTypeError(
            f"a seed is a whole number from 0 to {2**31 - 1}, not {text!r}"
        )
    return number


def encodable(text: str) -> str:
    """A text from a command line, which may hold bytes of any kind, that a file can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(
            f"expected text in UTF-8, not '{visible(text, 60)}'"
        ) from None
    return text


def seconds(text: str) -> float:
    """A time to wait for a server from a command line."""
    from spade_runtime.chat_client import SECONDS_MAX  # loads more than a listing needs

    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= SECONDS_MAX:
        raise argparse.ArgumentTypeError(
            f"expected seconds above 0 and up to {SECONDS_MAX:,}, not '{visible(text, 60)}'"
        )
    return number


def positive(text: str) -> int:
    """A count from a command line."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, not {text!r}")
    return number
