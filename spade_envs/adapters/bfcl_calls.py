"""BFCL's ways to write schemas, calls and results, and ours."""

from __future__ import annotations

import ast
import inspect
import json
from typing import Any

from spade_runtime.errors import UsageError

_TYPES = {"dict": "object", "float": "number", "tuple": "array"}
# A type that BFCL writes where any value is taken; JSON Schema says so by saying no type.
_ANY = "any"


def as_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter's schema, in JSON Schema's names.

    >>> as_schema({"type": "float", "description": "km"})
    {'type': 'number', 'description': 'km'}
    """
    made = {key: value for key, value in schema.items() if key in ("description", "required")}
    kind = schema.get("type", _ANY)
    if kind != _ANY:
        made = {"type": _TYPES.get(kind, kind), **made}
    if "properties" in schema:
        made["properties"] = {name: as_schema(one) for name, one in schema["properties"].items()}
    if "items" in schema:
        made["items"] = as_schema(schema["items"])
    if schema.get("default", "None") != "None":
        made["default"] = schema["default"]
    if "enum" in schema:
        made["enum"] = schema["enum"]
    return made


def as_calls(turn: list[str], instances: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """A turn's reference calls, `(name, arguments)`, from the Python that BFCL writes.

    Args:
        turn: calls like `mv('a', destination='b')`.
        instances: the backends, which know the names of arguments without one.

    Raises:
        UsageError: what is written there is no call of one of the tools.
    """
    return [_call(text, instances) for text in turn]


def as_text(result: Any) -> str:
    """A tool's result as BFCL shows it to the agent."""
    if isinstance(result, str):
        return result
    if isinstance(result, dict):
        try:
            return json.dumps(result)
        except (TypeError, ValueError):
            return str(result)
    return str(result)


def _call(text: str, instances: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    tree = ast.parse(text.strip(), mode="eval").body
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        raise UsageError(f"a reference call of BFCL can't be read: {text:.200}")
    name = tree.func.id
    owner = next((one for one in instances.values() if hasattr(type(one), name)), None)
    if owner is None:
        raise UsageError(f"a reference call of BFCL names no tool: {text:.200}")
    values = [ast.literal_eval(one) for one in tree.args]
    named = {one.arg: ast.literal_eval(one.value) for one in tree.keywords if one.arg}
    bound = inspect.signature(getattr(owner, name)).bind(*values, **named)
    return name, dict(bound.arguments)
