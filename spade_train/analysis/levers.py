"""Levers: the numbers by which a source sets its difficulty, read without running it."""

from __future__ import annotations

import ast

# Metadata of the contract that is no difficulty of its own.
_METADATA = frozenset({"version"})
# A literal such as 1e999 is infinite: no setting of anything.
LARGEST = 1e15


def levers(source: str) -> dict[str, float]:
    r"""Return the numeric class attributes and upper-case module constants of a source.

    A designer that writes for a moving agent moves these: number of options, length of a chain,
    size of a range. A source that does not parse has none.

    >>> levers("class HopEnv:\n    skill = 'optimization'\n    OPTIONS = 4\n    max_turns = 6")
    {'OPTIONS': 4, 'max_turns': 6}
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[str, float] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                found.update(_numbers(inner))
        else:
            found.update({k: v for k, v in _numbers(node).items() if k.isupper()})
    return {name: value for name, value in found.items() if name not in _METADATA}


def _numbers(node: ast.stmt) -> dict[str, float]:
    """Return the names that a statement binds to a literal number."""
    targets: list[ast.expr]
    if isinstance(node, ast.Assign):
        targets, value = node.targets, node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets, value = [node.target], node.value
    else:
        return {}
    negative = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)
    literal = value.operand if isinstance(value, ast.UnaryOp) and negative else value
    if not isinstance(literal, ast.Constant) or type(literal.value) not in (int, float):
        return {}
    number = -literal.value if negative else literal.value  # type: ignore[operator]
    if abs(number) > LARGEST:  # type: ignore[arg-type]
        return {}
    return {t.id: number for t in targets if isinstance(t, ast.Name)}  # type: ignore[misc]
