"""Tool calls that fit a schema: what the tools gate tries, beside the solution's own calls."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spade_runtime.validation.actions import UNKNOWN, content_words, numbers, quoted

ToolCall = tuple[str, bytes]
"""A tool's name and its arguments as JSON."""

_INTEGERS: tuple[Any, ...] = (0, 1, -1, 2, 7, 100, 10**6, -(10**6), 10**9)
_FLOATS: tuple[Any, ...] = (0.0, 1.0, -1.5, 0.1, 1e9, -1e9, 3)
_STRINGS: tuple[str, ...] = ("", UNKNOWN, "0", "-1", " ", "\u00e9\u4e2d", "a" * 300)
_DEPTH = 4


def packed(arguments: Mapping[str, Any]) -> bytes:
    """Arguments as the JSON that goes over the wire."""
    return json.dumps(arguments, ensure_ascii=False).encode()


def seen_values(texts: Iterable[str]) -> list[str]:
    """Texts that a person would take for values: quoted ones, codes, names, numbers."""
    found: dict[str, None] = {}
    for text in texts:
        found.update(dict.fromkeys(quoted(text)))
        parts = content_words(text)
        found.update(dict.fromkeys(parts))
        named = [word for word in parts if word[:1].isupper()]
        found.update(
            (f"{one} {other}", None)
            for one, other in zip(named, named[1:], strict=False)
            if f"{one} {other}" in text
        )
    return list(found)


class ArgumentMaker:
    """Makes arguments that fit the schemas of one environment's tools.

    Args:
        tools: name and parameters of each tool.
        values: values seen in instructions, results and the solution, most telling first.
        chooser: draws among them.
    """

    def __init__(
        self,
        tools: Mapping[str, Mapping[str, Any]],
        values: Sequence[Any],
        chooser: random.Random,
    ) -> None:
        self._tools = tools
        self._chooser = chooser
        self._texts = [v for v in values if isinstance(v, str)]
        self._integers = [v for v in values if type(v) is int] + [
            int(n) for text in self._texts for n in numbers(text) if n.lstrip("-").isdigit()
        ][:24]

    def plain(self, name: str) -> ToolCall:
        """A call with the first plain value for each required argument."""
        schema = self._tools[name]
        properties, required = schema.get("properties", {}), schema.get("required", [])
        made = {key: self._values(properties.get(key, {}))[0] for key in required}
        return name, packed(made)

    def each(self, name: str, limit: int = 40) -> list[ToolCall]:
        """Calls of a tool in which every argument takes every kind of value once."""
        schema = self._tools[name]
        properties: Mapping[str, Any] = schema.get("properties", {})
        required = set(schema.get("required", []))
        pools = {key: self._values(value) for key, value in properties.items()}
        made: dict[ToolCall, None] = {}
        width = max((len(pool) for pool in pools.values()), default=1)
        for place in range(width):
            arguments = {key: pool[place % len(pool)] for key, pool in pools.items()}
            made[name, packed(arguments)] = None
            short = {key: value for key, value in arguments.items() if key in required}
            made[name, packed(short)] = None
            if len(made) >= limit:
                break
        return list(made)[:limit]

    def vary(self, call: ToolCall, limit: int = 12) -> list[ToolCall]:
        """A solution's call with one argument at a time replaced."""
        name, data = call
        properties: Mapping[str, Any] = self._tools.get(name, {}).get("properties", {})
        arguments = json.loads(data)
        made: dict[ToolCall, None] = {}
        for key, schema in properties.items():
            for value in self._chooser.sample(pool := self._values(schema), min(6, len(pool))):
                made[name, packed({**arguments, key: value})] = None
        return self._chooser.sample(list(made), min(limit, len(made)))

    def any(self) -> ToolCall:
        """A call drawn at random."""
        name = self._chooser.choice(sorted(self._tools))
        schema = self._tools[name]
        required = set(schema.get("required", []))
        arguments = {
            key: self._chooser.choice(self._values(value))
            for key, value in schema.get("properties", {}).items()
            if key in required or self._chooser.random() < 0.5
        }
        return name, packed(arguments)

    def _values(self, schema: Mapping[str, Any], depth: int = 0) -> list[Any]:
        """Values that a schema allows, an ordinary one first."""
        if "enum" in schema:
            return list(schema["enum"]) or [None]
        kinds = schema.get("type", "string")
        found: list[Any] = []
        for kind in kinds if isinstance(kinds, list) else [kinds]:
            found += self._of_kind(kind, schema, depth)
        if "default" in schema:
            found.append(schema["default"])
        return found or [UNKNOWN]

    def _of_kind(self, kind: str, schema: Mapping[str, Any], depth: int) -> list[Any]:
        if kind == "string":
            return [*self._texts[:1], *_STRINGS, *self._texts[1:24]]
        if kind == "integer":
            return _within([1, *self._integers[:12], *_INTEGERS], schema)
        if kind == "number":
            return _within([*_FLOATS, *self._integers[:8]], schema)
        if kind == "boolean":
            return [False, True]
        if kind == "null":
            return [None]
        if depth >= _DEPTH:
            return [[] if kind == "array" else {}]
        if kind == "array":
            items = self._values(schema.get("items", {}), depth + 1)
            return [items[:1], [], items[1:2], items[:3], [items[0], items[0]], items[-2:]]
        if kind == "object":
            return self._objects(schema, depth)
        return [UNKNOWN]

    def _objects(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        properties: Mapping[str, Any] = schema.get("properties", {})
        if properties:
            pools = {key: self._values(value, depth + 1) for key, value in properties.items()}
            required = set(schema.get("required", []))
            first = {key: pool[0] for key, pool in pools.items()}
            last = {key: pool[-1] for key, pool in pools.items() if key in required}
            return [first, last]
        extra = schema.get("additionalProperties")
        inner = self._values(extra if isinstance(extra, Mapping) else {}, depth + 1)
        names = [*self._texts[:2], UNKNOWN]
        return [{}, {names[0]: inner[0]}, dict(zip(names, inner, strict=False)), {"": inner[-1]}]


def _within(values: Sequence[Any], schema: Mapping[str, Any]) -> list[Any]:
    low, high = schema.get("minimum"), schema.get("maximum")
    kept = [
        value
        for value in dict.fromkeys(values)
        if (low is None or value >= low) and (high is None or value <= high)
    ]
    bounds = [bound for bound in (low, high) if bound is not None]
    return kept or bounds or [0]
