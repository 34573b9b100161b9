"""What a designer's answer holds: its code, or the reason why there is none."""

from __future__ import annotations

import re
from typing import NamedTuple

_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})[ \t]*([^\n`]*)$", re.MULTILINE)
_CLASS = re.compile(r"^class\s+\w+Env\b", re.MULTILINE)


class Extraction(NamedTuple):
    """The code of an answer, or why there is none.

    Attributes:
        source: the code, None where none was found.
        reason: empty where there is code; otherwise what was seen instead.
    """

    source: str | None
    reason: str = ""


def without_thinking(text: str) -> str:
    """Return the part of an answer that counts: after the last `</think>`.

    An unclosed `<think>` hides what follows it.

    >>> without_thinking("<think>a class</think> Here:")
    ' Here:'
    >>> without_thinking("Hm <think>never closed")
    'Hm '
    """
    visible = text.rpartition("</think>")[2]
    return visible.partition("<think>")[0]


def extract_source(text: str, *, bare: bool = False) -> Extraction:
    r"""Return the last complete code block of a designer's answer.

    Args:
        text: what the designer wrote, thinking included.
        bare: take an answer without any fence as code if it defines a class ending in `Env` (the
            embedded policy writes no fences).

    >>> extract_source("```python\nx = 1\n```").source
    'x = 1\n'
    >>> extract_source("I would rather not.").reason
    'no code block in the answer'
    """
    visible = without_thinking(text).replace("\r\n", "\n")
    if not visible.strip():
        empty = not text.strip()
        return Extraction(None, "the answer is empty" if empty else "the answer is only thinking")
    blocks, opened = _blocks(visible)
    if blocks:
        return Extraction(blocks[-1])
    if opened:
        return Extraction(None, "the code block is not closed: the answer was cut")
    if bare and _CLASS.search(visible):
        return Extraction(visible.strip() + "\n")
    return Extraction(None, "no code block in the answer")


def _blocks(text: str) -> tuple[list[str], bool]:
    """Return the complete fenced blocks that hold something, and whether one is left open."""
    blocks: list[str] = []
    fence, start = "", 0
    for match in _FENCE.finditer(text):
        marks, info = match.group(1), match.group(2).strip()
        if not fence:
            fence, start = marks, match.end() + 1
        elif marks[0] == fence[0] and len(marks) >= len(fence) and not info:
            block = text[start : match.start()]
            if block.strip():
                blocks.append(block)
            fence = ""
    return blocks, bool(fence)
