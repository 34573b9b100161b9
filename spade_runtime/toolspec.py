"""Derives a tool's OpenAI function schema from its signature and docstring (contract.md section 1).

Runs in the sandbox's child; standard library only. Annotations that are strings (`from __future__
import annotations`) are read from their syntax tree and never evaluated: evaluating them would run
code that the static policy has not seen.
"""

from __future__ import annotations

import ast
import inspect
import json
import math
import re
import types
import typing
from collections.abc import Callable
from enum import Enum
from typing import Any

from spade_runtime.authoring import declared_tools
from spade_runtime.docstrings import read_docstring

Problem = tuple[str, str]
Schema = dict[str, Any]

TOOLS_MAX = 128
ENUM_MAX = 1000
DEPTH_MAX = 10
PROPERTIES_MAX = 5000
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
# A tool of one of these names would hide what the base class or the runtime calls.
RESERVED = ("reset", "step", "setup", "user_turns", "solution", "close", "state", "call", "tool")

_PLAIN: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_TYPES_HELP = "use str, int, float, bool, Literal, list[...], dict[str, ...] or T | None"
_NAMES: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list": list,
    "dict": dict,
    "None": type(None),
    "List": list,
    "Dict": dict,
    "Literal": typing.Literal,
    "Optional": typing.Optional,
    "Union": typing.Union,
}


class Unsupported(Exception):
    """A type, default or signature that no schema can say; the message gives the mend."""


def derive(cls: type) -> tuple[list[Schema], list[Problem]]:
    """Derive the schemas of a class's tools.

    Args:
        cls: a subclass of `ToolEnv`.

    Returns:
        The functions, each `{"name", "description", "parameters"}` in the order of definition, and
        the problems as `(code, message)`: SPD501 where function calling can't have the tool,
        SPD502 where the docstring and the method disagree. A tool with an SPD501 problem is left
        out of the functions.
    """
    schemas: list[Schema] = []
    problems: list[Problem] = []
    tools = declared_tools(cls)
    if not tools:
        problems.append(("SPD501", f"{cls.__name__} declares no tool; put @tool above a method"))
    if len(tools) > TOOLS_MAX:
        problems.append(("SPD501", f"{len(tools)} tools; at most {TOOLS_MAX} can be offered"))
    folded: dict[str, str] = {}
    for name, value in tools.items():
        try:
            _check_name(name, folded)
            schemas.append(_function(name, value, problems))
        except Unsupported as problem:
            problems.append(("SPD501", f"tool {name}: {problem}"))
    properties = sum(_count(schema["parameters"]) for schema in schemas)
    if properties > PROPERTIES_MAX:
        problems.append(("SPD501", f"{properties} properties in all; at most {PROPERTIES_MAX}"))
    return schemas, problems


def _check_name(name: str, folded: dict[str, str]) -> None:
    if not NAME.match(name):
        raise Unsupported("a tool's name is 1 to 64 ASCII letters, digits, _ or -")
    if name.startswith("_"):
        raise Unsupported("names with a leading underscore are private and can't be called")
    if name in RESERVED:
        raise Unsupported("this name belongs to ToolEnv; choose another")
    other = folded.setdefault(name.casefold(), name)
    if other != name:
        raise Unsupported(f"differs from tool {other} in upper and lower case only")


def _function(name: str, function: Any, problems: list[Problem]) -> Schema:
    if not inspect.isfunction(function):
        raise Unsupported(f"is a {type(function).__name__}; a tool is a plain method with self")
    signature = _signature(function)
    parameters = list(signature.parameters.values())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].kind not in positional:
        raise Unsupported("takes no self; a tool is a plain method")
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for parameter in parameters[1:]:
        properties[parameter.name] = _property(function, parameter)
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    description, described = read_docstring(function.__doc__ or "", properties)
    for argument, text in described.items():
        if argument in properties:
            properties[argument] = {"description": text, **properties[argument]}
        else:
            known = ", ".join(properties) or "none"
            problems.append(
                (
                    "SPD502",
                    f"tool {name}: the docstring describes {argument!r}, which the method does not "
                    f"take (its arguments: {known})",
                )
            )
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return {"name": name, "description": description, "parameters": schema}


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (NameError, TypeError, ValueError) as problem:
        # From Python 3.14 on annotations are evaluated when they are read.
        raise Unsupported(f"its signature can't be read: {problem}") from None


def _property(function: Any, parameter: inspect.Parameter) -> Schema:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise Unsupported(f"takes *{name}, which no schema can say; name each argument")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise Unsupported(f"{name} is positional-only, but calls pass arguments by name")
    if not NAME.match(name):
        raise Unsupported(f"argument {name}: names are 1 to 64 ASCII letters, digits or _")
    if parameter.annotation is parameter.empty:
        raise Unsupported(f"argument {name} has no annotation; {_TYPES_HELP}")
    try:
        annotation = parameter.annotation
        if isinstance(annotation, str):
            annotation = _from_text(annotation, function.__globals__)
        schema = _schema(annotation, function.__globals__)
    except Unsupported as problem:
        raise Unsupported(f"argument {name}: {problem}") from None
    if parameter.default is not parameter.empty:
        schema["default"] = _default(name, parameter.default, schema)
    return schema


def _from_text(text: str, names: dict[str, Any]) -> Any:
    """Read an annotation from its text, without evaluating anything."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Unsupported(f"annotation {text[:80]!r} can't be read") from None
    return _from_node(node, names)


def _from_node(node: ast.expr, names: dict[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        if node.value is None:
            return type(None)
        if isinstance(node.value, str):
            return _from_text(node.value, names)
    if isinstance(node, ast.Name):
        # An alias of the module's own, such as Colour = Literal["red", "blue"].
        if node.id in _NAMES:
            return _NAMES[node.id]
        if node.id in names:
            return names[node.id]
    if (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("typing", "t")
        and node.attr in _NAMES
    ):
        return _NAMES[node.attr]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return typing.Union[_from_node(node.left, names), _from_node(node.right, names)]  # noqa: UP007
    if isinstance(node, ast.Subscript):
        base = _from_node(node.value, names)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if base is typing.Literal:
            return typing.Literal[tuple(_literal_value(part) for part in parts)]
        inner = tuple(_from_node(part, names) for part in parts)
        if base in (list, dict, typing.Optional, typing.Union):
            try:
                return base[inner if len(inner) != 1 else inner[0]]
            except TypeError as problem:
                raise Unsupported(f"{ast.unparse(node)[:80]}: {problem}") from None
    raise Unsupported(f"type {ast.unparse(node)[:80]} is not supported; {_TYPES_HELP}")


def _literal_value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        raise Unsupported(f"Literal[{ast.unparse(node)[:80]}] holds no plain value") from None


def _schema(annotation: Any, names: dict[str, Any], depth: int = 1) -> Schema:
    """The JSON Schema of one annotation."""
    if depth > DEPTH_MAX:
        raise Unsupported(f"nested more than {DEPTH_MAX} levels deep")
    if isinstance(annotation, str):
        annotation = _from_text(annotation, names)
    elif isinstance(annotation, typing.ForwardRef):
        annotation = _from_text(annotation.__forward_arg__, names)
    if isinstance(annotation, type) and annotation in _PLAIN:
        return {"type": _PLAIN[annotation]}
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return _enum(parts)
    if origin in (typing.Union, types.UnionType):
        return _nullable(parts, names, depth)
    if origin is list and len(parts) == 1:
        return {"type": "array", "items": _schema(parts[0], names, depth + 1)}
    if origin is dict and len(parts) == 2:
        if parts[0] is not str:
            raise Unsupported("the keys of a dict are str: JSON has no others")
        return {"type": "object", "additionalProperties": _schema(parts[1], names, depth + 1)}
    raise Unsupported(_refusal(annotation))


def _refusal(annotation: Any) -> str:
    if annotation in (list, typing.List):  # noqa: UP006
        return "list needs the type of its items: list[str], say"
    if annotation in (dict, typing.Dict):  # noqa: UP006
        return "dict needs the types of its keys and values: dict[str, int], say"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        values = ", ".join(repr(member.value) for member in list(annotation)[:8])
        return f"{annotation.__name__} is an Enum; write Literal[{values}]"
    shown = annotation.__name__ if type(annotation) is type else str(annotation)
    return f"type {shown[:80]} is not supported; {_TYPES_HELP}"


def _enum(values: tuple[Any, ...]) -> Schema:
    kinds = []
    for value in values:
        kind = "null" if value is None else _PLAIN.get(type(value))
        if kind is None or kind == "number":
            raise Unsupported(f"Literal takes str, int, bool or None, not {value!r}")
        if kind not in kinds:
            kinds.append(kind)
    if len(values) > ENUM_MAX:
        raise Unsupported(f"Literal with {len(values)} values; at most {ENUM_MAX}")
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": list(values)}


def _nullable(parts: tuple[Any, ...], names: dict[str, Any], depth: int) -> Schema:
    others = [part for part in parts if part is not type(None)]
    if len(others) != 1 or len(others) == len(parts):
        raise Unsupported(f"a union of several types is not supported; {_TYPES_HELP}")
    schema = _schema(others[0], names, depth)
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    schema["type"] = [*kinds, "null"] if "null" not in kinds else kinds
    if "enum" in schema and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    return schema


def _default(name: str, value: Any, schema: Schema) -> Any:
    if not _fits(value, schema):
        wanted = schema.get("enum") or schema["type"]
        mend = "; write T | None" if value is None else ""
        raise Unsupported(f"argument {name}: its default {value!r:.80} is no {wanted}{mend}")
    return json.loads(json.dumps(value))


def _fits(value: Any, schema: Schema) -> bool:
    """Whether a Python value is one that a schema of this module allows."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "enum" in schema:
        return any(type(value) is type(item) and value == item for item in schema["enum"])
    if value is None:
        return "null" in kinds
    if type(value) is float:
        return "number" in kinds and math.isfinite(value)
    if type(value) is int:
        return "integer" in kinds or "number" in kinds
    if type(value) is list:
        return "array" in kinds and all(_fits(item, schema["items"]) for item in value)
    if type(value) is dict:
        items = schema.get("additionalProperties")
        return "object" in kinds and all(
            type(key) is str and _fits(item, items or {}) for key, item in value.items()
        )
    return _PLAIN.get(type(value)) in kinds


def _count(schema: Schema) -> int:
    return len(schema.get("properties", {}))
