"""What a person types in the terminal -> a tool call.

>>> from spade_runtime.spec import ToolSpec
>>> lend = ToolSpec(name="lend", parameters={"type": "object", "required": ["tag"],
...     "properties": {"tag": {"type": "string"}, "days": {"type": "integer"}}})
>>> typed_call("lend(tag='K12', days=3)", [lend])
{'name': 'lend', 'arguments': {'tag': 'K12', 'days': 3}}
>>> typed_call("lend K12 days=3", [lend]) == typed_call("lend(tag='K12', days=3)", [lend])
True
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from spade_runtime.errors import UsageError
from spade_runtime.spec import ToolSpec

_PYTHON = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", re.DOTALL)


def typed_call(line: str, tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """Read `name(argument=value)` or `name value argument=value`.

    Raises:
        UsageError: it can't be read, or there is no such tool; the message says how to type it.
    """
    named = {tool.name: tool for tool in tools}
    python = _PYTHON.fullmatch(line)
    name = python[1] if python else line.split(maxsplit=1)[0] if line.strip() else ""
    if name not in named:
        near = get_close_matches(name, named, n=1)
        hint = f"did you mean {near[0]}?" if near else f"tools are {', '.join(named)}"
        raise UsageError(f"there is no tool {name!r}; {hint}")
    properties = named[name].parameters.get("properties", {})
    arguments = _from_python(line) if python else _from_words(line, properties)
    return {"name": name, "arguments": _placed(arguments, list(properties), name)}


def signature(tool: ToolSpec) -> str:
    """How a tool is called; what may be left out stands in brackets, choices after a colon.

    >>> signature(ToolSpec(name="ping", parameters={"properties": {"host": {"enum": ["a", "b"]}}}))
    'ping([host: a|b])'
    """
    needed = set(tool.parameters.get("required", ()))
    parts = []
    for name, schema in tool.parameters.get("properties", {}).items():
        choices = "|".join(map(str, schema.get("enum", ())))
        part = f"{name}: {choices}" if choices else name
        parts.append(part if name in needed else f"[{part}]")
    return f"{tool.name}({', '.join(parts)})"


def _from_python(line: str) -> list[tuple[str | None, Any]]:
    try:
        node = ast.parse(line.strip(), mode="eval").body
        if not isinstance(node, ast.Call):
            raise ValueError("no call")
        given: list[tuple[str | None, Any]] = [(None, _literal(part)) for part in node.args]
        given += [(part.arg, _literal(part.value)) for part in node.keywords]
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise UsageError("that call can't be read; type it like lend(tag='K12', days=3)") from error
    return given


def _literal(node: ast.expr) -> Any:
    # A bare word is meant as text: people leave the quotes out.
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)


def _from_words(line: str, properties: dict[str, Any]) -> list[tuple[str | None, Any]]:
    try:
        words = shlex.split(line)[1:]
    except ValueError as error:
        raise UsageError(f"{error}; close the quotes, or put a backslash before them") from error
    given: list[tuple[str | None, Any]] = []
    for place, word in enumerate(words):
        key, equals, value = word.partition("=")
        if equals and key in properties:
            given.append((key, _read(value, properties[key])))
        else:
            schema = list(properties.values())[place] if place < len(properties) else {}
            given.append((None, _read(word, schema)))
    return given


def _read(text: str, schema: dict[str, Any]) -> Any:
    """A value of the type that the schema wants, or the text where it fits none."""
    if schema.get("type") == "string" or text in schema.get("enum", ()):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _placed(
    given: Sequence[tuple[str | None, Any]], names: Sequence[str], tool: str
) -> dict[str, Any]:
    """Arguments by name; those without one take the names in order."""
    if len(given) > len(names):
        many = f"at most {len(names)} arguments: {', '.join(names)}"
        few = f"one argument: {names[0]}" if names else "no arguments"
        raise UsageError(f"{tool} takes {many if len(names) > 1 else few}")
    return {
        names[place] if name is None else name: value for place, (name, value) in enumerate(given)
    }
