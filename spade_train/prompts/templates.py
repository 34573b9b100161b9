"""Template files: a version line, then the text of each role, with `$name` for what is put in.

    version: 1
    --- system ---
    You design ...
    --- user ---
    Write one game environment that trains $skill.

A section template has the one role `text`. Values are put in as they are: a `$` inside a document
or a source stays a `$`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Literal

Style = Literal["full", "compact"]
Message = dict[str, str]
STYLES: tuple[Style, ...] = ("full", "compact")

_ROLE = re.compile(r"^--- (system|user|text) ---$", re.MULTILINE)
_NAME = re.compile(r"\$([a-z_]+)")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One template.

    Attributes:
        name: file name without its ending.
        version: goes up with each change of the wording.
        parts: (role, text) in order.
    """

    name: str
    version: int
    parts: tuple[tuple[str, str], ...]

    @property
    def placeholders(self) -> frozenset[str]:
        """The names that must be given."""
        return frozenset(name for _, text in self.parts for name in _NAME.findall(text))

    def messages(self, values: Mapping[str, str]) -> list[Message]:
        """Return the chat messages with the values put in."""
        return [
            {"role": role, "content": _fill(text, values).strip("\n")} for role, text in self.parts
        ]

    def text(self, values: Mapping[str, str]) -> str:
        """Return the text of a section template with the values put in."""
        return "".join(_fill(text, values) for _, text in self.parts)


def _fill(text: str, values: Mapping[str, str]) -> str:
    return Template(text).substitute(values)


@cache
def load(style: Style, name: str) -> Prompt:
    """Read a template that ships with the package.

    Raises:
        ValueError: the file does not have the form above.
    """
    path = files("spade_train.prompts").joinpath(style, f"{name}.txt")
    raw = path.read_text(encoding="utf-8")
    head, _, body = raw.partition("\n")
    pieces = _ROLE.split(body)
    if not head.startswith("version: ") or len(pieces) < 3 or pieces[0].strip():
        raise ValueError(f"prompt {style}/{name} needs `version: N`, then `--- role ---` parts")
    # The line break that ends the role line is not part of the text.
    parts = tuple((pieces[i], pieces[i + 1].removeprefix("\n")) for i in range(1, len(pieces), 2))
    return Prompt(name, int(head.removeprefix("version: ")), parts)


def versions(style: Style) -> dict[str, int]:
    """Return the version of each template of a style, for a run's records."""
    names = sorted(
        entry.name.removesuffix(".txt")
        for entry in files("spade_train.prompts").joinpath(style).iterdir()
        if entry.name.endswith(".txt")
    )
    return {name: load(style, name).version for name in names}
