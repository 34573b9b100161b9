"""Reads the argument lines of a tool's docstring.

Runs in the sandbox's child; standard library only.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Container

# Words that begin a line of prose, or a section, and are no argument's name.
_PROSE = frozenset(
    ("attention", "caution", "default", "example", "examples", "important", "note", "notes")
    + ("raises", "remark", "result", "return", "returns", "see", "tip", "todo", "usage")
    + ("warning", "warnings", "yields")
)
_SECTION = re.compile(r"\s*(args|arguments|parameters|params)\s*:\s*\Z", re.IGNORECASE)
_ARGUMENT = re.compile(
    r"\s*(?::param\s+)?[`*]*([A-Za-z_]\w*)[`*]*\s*(?:\([^)]*\))?\s*:(?:\s+(.*))?\Z"
)


def read_docstring(text: str, arguments: Container[str]) -> tuple[str, dict[str, str]]:
    """Split a docstring into the description and its argument lines.

    An argument line is `name: text`, after the summary, in a block of such lines or under `Args:`;
    deeper indented lines go on with it. A line whose name is no argument counts as an argument line
    only where it can't be prose: under `Args:`, or in a block that holds nothing else.

    Args:
        text: the raw docstring.
        arguments: the names that the method takes.

    Returns:
        The description, and the text for each name that is described.
    """
    lines = inspect.cleandoc(text).split("\n")
    prose, described = [lines[0]], dict[str, str]()
    blocks: list[list[str]] = [[]]
    for line in lines[1:]:
        if line.strip():
            blocks[-1].append(line)
        else:
            blocks.append([])
    summary_ends = lines[0].rstrip().endswith((".", "!", "?", ":"))
    for position, block in enumerate(blocks):
        found = _argument_block(block, arguments, closed=position > 0 or summary_ends)
        if found is None:
            prose += ["", *block] if position and block else block
        else:
            described.update(found)
    return "\n".join(prose).strip(), described


def _argument_block(
    block: list[str], arguments: Container[str], *, closed: bool
) -> dict[str, str] | None:
    """The argument lines of a block, or None where it is prose."""
    section = bool(block) and _SECTION.match(block[0]) is not None
    rows = block[1:] if section else block
    if not rows:
        return {} if section else None
    margin = min(len(row) - len(row.lstrip()) for row in rows)
    found: dict[str, str] = {}
    last = ""
    for row in rows:
        if len(row) - len(row.lstrip()) > margin and last:
            found[last] = f"{found[last]} {row.strip()}".strip()
            continue
        match = _ARGUMENT.match(row)
        if match is None or (not section and match.group(1) not in arguments and not closed):
            return None
        last = match.group(1)
        found[last] = (match.group(2) or "").strip()
    strangers = [name for name in found if name not in arguments]
    if section or not strangers:
        return found
    if any(not name.islower() or name.lower() in _PROSE for name in strangers):
        # "Note: ..." beside real argument lines is prose; the argument lines still count.
        return {name: text for name, text in found.items() if name in arguments} or None
    return found
