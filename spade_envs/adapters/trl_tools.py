"""Turns function schemas into methods, as TRL and transformers want tools."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable
from typing import Any, Literal, Union

from spade_runtime.errors import UsageError
from spade_runtime.spec import ToolSpec

_OWN = ("reset", "get_reward")
_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": None,
    "array": list,
    "object": dict,
}


def method(tool: ToolSpec, owner: str) -> Callable[..., str]:
    """A method with the signature and docstring from which transformers derives the schema.

    Args:
        tool: the tool; the method hands its name and arguments to `self._use`.
        owner: the environment's id, for messages.

    Raises:
        UsageError: a name that TRL does not offer, or that no Python argument can have.
    """
    if tool.name in _OWN or tool.name.startswith("_"):
        raise UsageError(f"{owner} has a tool {tool.name!r}, a name that TRL does not offer")

    def use(self: Any, /, **arguments: Any) -> str:
        return str(self._use(tool.name, arguments))

    properties: dict[str, Any] = tool.parameters.get("properties", {})
    wrong = [name for name in properties if not name.isidentifier() or keyword.iskeyword(name)]
    if wrong:
        raise UsageError(f"{owner}: the tool {tool.name!r} has an argument {wrong[0]!r}, no name")
    required = tool.parameters.get("required", [])
    hints = {name: _hint(schema) for name, schema in properties.items()}
    named = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    for name, schema in properties.items():
        default = inspect.Parameter.empty if name in required else schema.get("default")
        kind = inspect.Parameter.KEYWORD_ONLY
        named.append(inspect.Parameter(name, kind, default=default, annotation=hints[name]))
    lines = [f"    {name}: {_line(schema)}" for name, schema in properties.items()]
    said = " ".join(tool.description.split()) or tool.name
    use.__name__ = use.__qualname__ = tool.name
    use.__doc__ = "\n".join([said, "", "Args:", *lines]) if lines else said
    use.__annotations__ = {**hints, "return": str}
    use.__dict__["__signature__"] = inspect.Signature(named, return_annotation=str)
    return use


def _line(schema: dict[str, Any]) -> str:
    return " ".join(str(schema.get("description", "")).split()) or "as its name says"


def _hint(schema: dict[str, Any]) -> Any:
    """The type hint that stands for a JSON schema."""
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    kinds = schema.get("anyOf") or schema.get("type")
    if isinstance(kinds, list):
        parts = [_hint(one if isinstance(one, dict) else {**schema, "type": one}) for one in kinds]
        return Union[tuple(parts)]  # noqa: UP007 - the parts are known only now
    if kinds == "array" and "items" in schema:
        return list[_hint(schema["items"])]  # type: ignore[misc]
    if kinds == "object" and isinstance(schema.get("additionalProperties"), dict):
        return dict[str, _hint(schema["additionalProperties"])]  # type: ignore[misc]
    return _TYPES.get(str(kinds), Any)
