"""What a designer's answer holds: its code, or the reason why there is none."""

from __future__ import annotations

import re
from typing import NamedTuple

# A fence begins a line, or follows the end of thinking.
_MARK = re.compile(
    r"(?P<tag></?think>)|"
    r"(?:^|(?<=</think>))[ \t]{0,3}(?P<fence>`{3,}|~{3,})[ \t]*"
    r"(?P<info>(?:(?!</?think>)[^\n`])*)(?:$|(?=</?think>))",
    re.MULTILINE,
)
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
    blocks, opened = _blocks(text.replace("\r\n", "\n"))
    if blocks:
        return Extraction(blocks[-1])
    visible = without_thinking(text).replace("\r\n", "\n")
    if not visible.strip():
        empty = not text.strip()
        return Extraction(None, "the answer is empty" if empty else "the answer is only thinking")
    if opened:
        return Extraction(None, "the code block is not closed: the answer was cut")
    if bare and _CLASS.search(visible):
        return Extraction(visible.strip() + "\n")
    return Extraction(None, "no code block in the answer")


def _blocks(text: str) -> tuple[list[str], bool]:
    """Return the complete fenced blocks outside thinking, and whether one is left open.

    Blocks that hold nothing don't count. Inside a block the marks of thinking are code, unless a
    new block begins after them: then the open one was a thought that never ended.
    """
    blocks: list[str] = []
    fence, start = "", 0
    thinking = ended = False
    for match in _MARK.finditer(text):
        tag, marks, info = match["tag"], match["fence"], (match["info"] or "").strip()
        if tag and fence:
            ended |= tag == "</think>"
        elif tag:
            thinking = tag == "<think>"
            if not thinking:
                blocks.clear()
        elif thinking:
            continue
        elif not fence or (ended and info):
            fence, start, ended = marks, match.end() + 1, False
        elif marks[0] == fence[0] and len(marks) >= len(fence) and not info:
            block = text[start : match.start()]
            if block.strip():
                blocks.append(block)
            fence = ""
    return blocks, bool(fence)
