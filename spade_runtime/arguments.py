"""Checks a call's arguments against the tool's schema, with validators built once.

A check costs microseconds; a schema is compiled when the environment is opened. The rules are JSON
Schema's: `2.0` is an integer and is handed on as `2`, `"2"` is not, and a boolean is no number.
Nothing is coerced but the text values of the XML call form, towards the type that the schema names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Protocol

import jsonschema_rs

from spade_runtime.literals import Unreadable, read_value, skip_space
from spade_runtime.messages import CallError, ParsedCall

_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
_NAMES_SHOWN = 20


class Tool(Protocol):
    """What a checker needs of a tool; `spade_runtime.spec.ToolSpec` has it."""

    @property
    def name(self) -> str:
        """The name that calls use."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, an object."""


class ArgumentChecker:
    """The tools of one environment, ready to check calls.

    Args:
        tools: names and JSON Schemas.

    Raises:
        ValueError: a schema can't be compiled.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._schemas: dict[str, dict[str, Any]] = {}
        self._validators: dict[str, Any] = {}
        for tool in tools:
            schema = {"additionalProperties": False, **tool.parameters}
            self._schemas[tool.name] = schema
            # The linear-time engine: a pattern comes from the environment's author.
            self._validators[tool.name] = jsonschema_rs.Draft202012Validator(
                schema, pattern_options=jsonschema_rs.RegexOptions()
            )

    def check(self, call: ParsedCall) -> str | None:
        """Why a call can't be run, as text for the agent, or None where it can."""
        checked = self.prepare(call)
        return checked.message if isinstance(checked, CallError) else None

    def prepare(self, call: ParsedCall) -> ParsedCall | CallError:
        """Check a call and bring its arguments into the form that the tool takes.

        Returns:
            The call with whole floats as integers where the schema wants those and text values
            read, or the error for the agent.
        """
        schema = self._schemas.get(call.name)
        if schema is None:
            return CallError(self._unknown_tool(call.name), call.call_id)
        try:
            arguments = _read_texts(call.arguments, schema) if call.textual else call.arguments
            problem = self._problem(call.name, arguments, schema)
        except (Unreadable, ValueError, TypeError, RecursionError) as unreadable:
            problem = str(unreadable)
        if problem is not None:
            return CallError(problem, call.call_id)
        return ParsedCall(call.name, _whole_numbers(arguments, schema), call.call_id)

    def _unknown_tool(self, name: str) -> str:
        names = sorted(self._schemas)
        near = get_close_matches(name[:64], names, n=1)
        shown = ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
        guess = f" (did you mean {near[0]}?)" if near else ""
        return f"unknown tool {name[:64]!r}{guess}; available: {shown}"

    def _problem(self, tool: str, arguments: dict[str, Any], schema: dict[str, Any]) -> str | None:
        validator = self._validators[tool]
        if validator.is_valid(arguments):
            return _unencodable(arguments)
        for error in validator.iter_errors(arguments):
            return _explain(error, arguments, schema)
        return "the arguments do not fit the tool's schema"


def _unencodable(arguments: dict[str, Any]) -> str | None:
    """JSON escapes can spell half a character, which no tool's result could carry on."""
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        return "the arguments hold a lone surrogate (half of a character)"
    return None


def _explain(error: Any, arguments: dict[str, Any], schema: Mapping[str, Any]) -> str:
    kind = error.kind
    where = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path
    ).lstrip(".")
    prefix = f"{where[:80]}: " if where else ""
    if kind.name == "additionalProperties":
        name = str(kind.unexpected[0])[:60]
        known = ", ".join(schema.get("properties", {})) or "none"
        place = f" in {where}" if where else f"; the arguments are: {known}"
        return f"unknown argument {name}{place}"
    if kind.name == "required":
        return f"{prefix}missing argument {kind.property}"
    value = _at(arguments, error.instance_path)
    if kind.name == "type":
        return f"{prefix}{value!r:.60} is {_an(value)}, {' or '.join(kind.types)} wanted"
    if kind.name == "enum":
        options = ", ".join(json.dumps(option, ensure_ascii=False) for option in kind.options[:20])
        return f"{prefix}{value!r:.60} is not one of {options}"
    return f"{prefix}{error.message:.200}"


def _at(value: Any, path: Iterable[Any]) -> Any:
    for step in path:
        value = value[step]
    return value


def _an(value: Any) -> str:
    if value is None:
        return "null"
    kind = _KINDS.get(type(value), "object")
    return f"an {kind}" if kind[0] in "aio" else f"a {kind}"


def _types(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def _whole_numbers(value: Any, schema: Any) -> Any:
    """Floats such as 2.0 as integers, where the schema says integer."""
    if not isinstance(schema, Mapping):
        return value
    if type(value) is float:
        kinds = _types(schema)
        whole = "integer" in kinds and "number" not in kinds and value.is_integer()
        return int(value) if whole else value
    if isinstance(value, list):
        return [_whole_numbers(item, schema.get("items")) for item in value]
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties")
        return {
            key: _whole_numbers(item, properties.get(key, others)) for key, item in value.items()
        }
    return value


def _read_texts(arguments: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    found: dict[str, Any] = {}
    for name, text in arguments.items():
        kinds = _types(properties.get(name, {}))
        if "string" in kinds or name not in properties:
            found[name] = text
            continue
        try:
            value, end = read_value(text, skip_space(text, 0))
            if skip_space(text, end) != len(text):
                raise Unreadable("more text follows")
        except Unreadable:
            wanted = " or ".join(kinds) or "JSON value"
            raise Unreadable(f"{name}: {text[:60]!r} can't be read as {wanted}") from None
        found[name] = value
    return found
