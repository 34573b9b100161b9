"""The long texts of the finding codes, read from the data file beside this module."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from spade_runtime.codes import CODES, Code
from spade_runtime.errors import UsageError


@dataclass(frozen=True, slots=True)
class Entry:
    """What the catalogue says of one code.

    Attributes:
        code: the code's row in the table.
        meaning: what it means, in two or three sentences.
        mend: what to do about it.
        example: a minimal source that shows it.
        encoding: how the example is encoded on disk.
        pad_to: size in bytes to which a comment pads the example; 0 leaves it alone.
        hint: the hint that goes with the example.
        neighbour: another environment of the pool that the example is compared with.
        policy: `on`, or `off` where the finding needs the static policy switched off.
        judge: the judge's answer, where the finding needs a judge.
    """

    code: Code
    meaning: str
    mend: str
    example: str
    encoding: str = "utf-8"
    pad_to: int = 0
    hint: str | None = None
    neighbour: str | None = None
    policy: str = "on"
    judge: str | None = None

    def source(self) -> bytes:
        """The example as the bytes of a file."""
        data = self.example.encode(self.encoding)
        missing = self.pad_to - len(data)
        if missing > 2:
            data += b"# " + b"." * (missing - 3) + b"\n"
        return data


@cache
def entries() -> dict[str, Entry]:
    """All entries by code, in the table's order."""
    text = files("spade_runtime.validation").joinpath("catalogue.toml").read_text("utf-8")
    rows: dict[str, dict[str, Any]] = tomllib.loads(text)
    return {code: Entry(code=row, **rows[code]) for code, row in CODES.items()}


def entry(code: str) -> Entry:
    """The entry of a code, written in any case and with or without `SPD`.

    Raises:
        UsageError: if there is no such code.
    """
    wanted = code.strip().upper()
    if wanted.isdigit():
        wanted = f"SPD{wanted}"
    if wanted not in CODES:
        near = get_close_matches(wanted, CODES, n=3, cutoff=0.7)
        advice = f"did you mean {', '.join(near)}?" if near else "`spade explain` lists all codes"
        raise UsageError(f"there is no finding code {code!r}; {advice}")
    return entries()[wanted]
