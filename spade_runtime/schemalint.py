"""What is wrong with a tool's schema beyond what a JSON Schema library says.

Function calling wants more than validity: an object at the root, `items` in every array, `required`
that names what is there, enums and defaults of their own type, and bounds on size. Schemas come
from an environment's author, so nothing that leads out of the document is let through. Standard
library only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
TOOLS_MAX = 128
TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
DEPTH_MAX = 10
PROPERTIES_MAX = 5000
ENUM_MAX = 1000
NAME_CHARS_MAX = 120_000

_REFUSED = ("$ref", "$dynamicRef", "$recursiveRef", "$defs", "definitions", "$id", "$anchor")
_UNIONS = ("anyOf", "oneOf", "allOf")
# Keyword -> the types that it says something about.
_BELONGS = {
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        ("integer", "number"),
    ),
    **dict.fromkeys(("minLength", "maxLength", "pattern"), ("string",)),
    **dict.fromkeys(("items", "minItems", "maxItems", "uniqueItems"), ("array",)),
    **dict.fromkeys(("properties", "required", "additionalProperties"), ("object",)),
}
_PYTHON = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_PYTHON.update({"list": "array", "dict": "object", "None": "null", "any": "no type at all"})


def lint(parameters: Any) -> list[str]:
    """Say what is wrong with the `parameters` of a function.

    Args:
        parameters: the schema, as decoded JSON.

    Returns:
        One line for each fault, each naming its place; at most 20. Empty where it can be used.

    >>> lint({"type": "object", "properties": {"x": {"type": "array"}}, "required": ["y"]})
    ["required names 'y', which is no property", 'x: an array needs items']
    """
    if not isinstance(parameters, Mapping):
        return ["the schema is no object"]
    if parameters.get("type") != "object":
        return [f"the root's type is {parameters.get('type')!r}; it must be 'object'"]
    found: list[str] = []
    count = [0, 0]
    for problem in _walk(parameters, "", 1, count):
        found.append(problem)
        if len(found) == 20:
            return found
    if count[0] > PROPERTIES_MAX:
        found.append(f"{count[0]} properties; at most {PROPERTIES_MAX}")
    if count[1] > NAME_CHARS_MAX:
        found.append(f"names and enums of {count[1]} characters; at most {NAME_CHARS_MAX}")
    return found


def tool_problems(schemas: bytes, claimed: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """What keeps a class's tools from being offered.

    Args:
        schemas: the functions as one JSON list, as the child claims them.
        claimed: problems that the child found itself, as `(code, message)`.

    Returns:
        The claimed problems and, as SPD501, what the schemas show to whoever reads them here.
    """
    found = list(claimed)
    try:
        functions = json.loads(schemas)
    except (ValueError, RecursionError):
        functions = None
    if not isinstance(functions, list):
        return [*found, ("SPD501", "the tools' schemas are no JSON list")]
    if len(functions) > TOOLS_MAX:
        found.append(("SPD501", f"{len(functions)} tools; at most {TOOLS_MAX} can be offered"))
    folded: dict[str, str] = {}
    for function in functions[:TOOLS_MAX]:
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(name, str) or not NAME.match(name):
            found.append(
                ("SPD501", f"tool {name!r:.80}: a name is 1 to 64 ASCII letters, digits, _ or -")
            )
            continue
        if folded.setdefault(name.casefold(), name) != name:
            found.append(("SPD501", f"tool {name}: another tool has the same name but for case"))
        found += [("SPD501", f"tool {name}: {text}") for text in lint(function.get("parameters"))]
    return found


def _walk(schema: Any, place: str, depth: int, count: list[int]) -> Iterator[str]:
    at = f"{place}: " if place else ""
    if not isinstance(schema, Mapping):
        yield f"{at}a schema is an object, not {schema!r:.60}"
        return
    if depth > DEPTH_MAX:
        yield f"{at}nested more than {DEPTH_MAX} levels deep"
        return
    for name in _REFUSED:
        if name in schema:
            yield f"{at}{name} is not supported; write the schema out"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(kinds, list) or any(kind not in TYPES for kind in kinds):
        wrong = [kind for kind in kinds if kind not in TYPES] if isinstance(kinds, list) else kinds
        mend = _PYTHON.get(str(wrong[0])) if isinstance(wrong, list) and wrong else None
        guess = f"; write {mend!r}" if mend else f"; the types are {', '.join(TYPES)}"
        yield f"{at}type {schema.get('type')!r:.60} is none{guess}"
        return
    yield from _keywords(schema, kinds, at)
    yield from _values(schema, kinds, at, count)
    yield from _inside(schema, kinds, place, depth, count)


def _keywords(schema: Mapping[str, Any], kinds: list[str], at: str) -> Iterator[str]:
    for keyword, types in _BELONGS.items():
        if keyword in schema and kinds and not set(kinds) & set(types):
            yield f"{at}{keyword} says nothing of a {' or '.join(kinds)}"
    if "array" in kinds and "items" not in schema:
        yield f"{at}an array needs items"


def _values(
    schema: Mapping[str, Any], kinds: list[str], at: str, count: list[int]
) -> Iterator[str]:
    if "enum" in schema:
        options = schema["enum"]
        if not isinstance(options, list) or not options:
            yield f"{at}enum is a list of values, not {options!r:.60}"
            return
        if len(options) > ENUM_MAX:
            yield f"{at}an enum of {len(options)} values; at most {ENUM_MAX}"
        count[1] += sum(len(option) for option in options if isinstance(option, str))
        for option in options:
            if kinds and not any(_is(option, kind) for kind in kinds):
                yield f"{at}the enum's {option!r:.60} is no {' or '.join(kinds)}"
    if "default" in schema:
        value, options = schema["default"], schema.get("enum")
        if kinds and not any(_is(value, kind) for kind in kinds):
            yield f"{at}the default {value!r:.60} is no {' or '.join(kinds)}"
        elif options is not None and value not in options:
            yield f"{at}the default {value!r:.60} is not in the enum"


def _inside(
    schema: Mapping[str, Any], kinds: list[str], place: str, depth: int, count: list[int]
) -> Iterator[str]:
    at = f"{place}: " if place else ""
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    if not isinstance(properties, Mapping):
        yield f"{at}properties is an object, not {properties!r:.60}"
        properties = {}
    if not isinstance(required, list):
        yield f"{at}required is a list of names, not {required!r:.60}"
        required = []
    for name in required:
        if name not in properties:
            yield f"{at}required names {name!r:.60}, which is no property"
    count[0] += len(properties)
    for name, inner in properties.items():
        count[1] += len(str(name))
        yield from _walk(inner, f"{place}.{name}".lstrip("."), depth + 1, count)
    if "items" in schema and "array" in kinds:
        yield from _walk(schema["items"], f"{place}[]", depth + 1, count)
    others = schema.get("additionalProperties")
    if others is not None and not isinstance(others, bool):
        yield from _walk(others, f"{place}.*".lstrip("."), depth + 1, count)
    for union in _UNIONS:
        options = schema.get(union, [])
        if not isinstance(options, list):
            yield f"{at}{union} is a list of schemas, not {options!r:.60}"
            continue
        for option in options:
            yield from _walk(option, place, depth + 1, count)


def _is(value: Any, kind: str) -> bool:
    if kind == "null":
        return value is None
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if kind == "number":
        return isinstance(value, int | float)
    wanted = {"string": str, "array": list, "object": dict}.get(kind)
    return wanted is not None and isinstance(value, wanted)
