"""Reads the shape of functions from their syntax: parameters, defaults, returns, callability."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Method = ast.FunctionDef | ast.AsyncFunctionDef


def parameters(node: ast.AST | None) -> set[str]:
    """The names that a function's parameters have; none where the node is no function."""
    if not isinstance(node, Method):
        return set()
    spec = node.args
    return {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}


def returned(node: ast.AST) -> Iterator[ast.expr]:
    """The values that a function returns, those of nested functions left out."""
    waiting: list[ast.AST] = list(getattr(node, "body", []))
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, ast.Return) and inner.value is not None:
            yield inner.value
        elif not isinstance(inner, Method | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(inner))


def default_of(node: ast.AST | None, name: str) -> int | None:
    """The default of a parameter, where it is a literal integer.

    >>> default_of(ast.parse("def f(a, max_turns=7): pass").body[0], "max_turns")
    7
    """
    if not isinstance(node, Method):
        return None
    spec = node.args
    named = [*spec.posonlyargs, *spec.args]
    pairs = list(zip(named[len(named) - len(spec.defaults) :], spec.defaults, strict=True))
    pairs += [(a, d) for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d]
    for argument, default in pairs:
        if argument.arg == name and isinstance(default, ast.Constant):
            return default.value if type(default.value) is int else None
    return None


def step_problem(node: Method) -> str | None:
    """Why a method can't be called as `step(action)`, or None."""
    if _lacks_self(node):
        return "it takes no self"
    _, positional, required = _positional(node)
    if not positional and not node.args.vararg:
        return "it takes no action"
    return _unfilled([a.arg for a in positional[1:required]] + _required_keywords(node))


def reset_problem(node: Method, *, loose: bool) -> str | None:
    """Why a method can't be called as `reset(seed=...)`, or None.

    Args:
        node: the method.
        loose: it may take no seed at all, or take it by position.
    """
    if _lacks_self(node):
        return "it takes no self"
    by_name, positional, required = _positional(node)
    needed = [a.arg for a in positional[:required]]
    if "seed" in by_name or node.args.kwarg:
        needed = [name for name in needed if name != "seed"]
    elif loose:
        needed = needed[1:]
    else:
        return "it takes no seed"
    keywords = [name for name in _required_keywords(node) if name != "seed"]
    return _unfilled(needed + keywords)


def _lacks_self(node: Method) -> bool:
    spec = node.args
    return not (node.decorator_list or spec.posonlyargs or spec.args or spec.vararg)


def _positional(node: Method) -> tuple[set[str], list[ast.arg], int]:
    """Names that can be passed by name; positional parameters and how many are required.

    The instance is left out. A decorated method is a static one here: others are not looked at.
    """
    spec = node.args
    positional = [*spec.posonlyargs, *spec.args]
    required = len(positional) - len(spec.defaults)
    by_name = {a.arg for a in (*spec.args, *spec.kwonlyargs)}
    if not node.decorator_list and positional:
        by_name.discard(positional[0].arg)
        positional, required = positional[1:], max(0, required - 1)
    return by_name, positional, required


def _required_keywords(node: Method) -> list[str]:
    spec = node.args
    return [a.arg for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is None]


def _unfilled(needed: list[str]) -> str | None:
    return f"nothing gives its argument {needed[0]!r}" if needed else None
