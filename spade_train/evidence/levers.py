"""The levers of a small environment, and how hard its designs are by them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

# More of each is harder.
LEVERS = ("rounds", "options", "reach")


def rule_reach(source: str) -> float | None:
    """Return how far a source's rule reaches, None where its code shows no such rule.

    Steps round a circle reach as far as they go; a choice by rank reaches as deep as it counts from
    its nearer end.

    >>> rule_reach("want = names[(names.index(clue) - 3) % 8]"), rule_reach("sorted(shown)[-2]")
    (3.0, 2.0)
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = [reach for node in ast.walk(tree) if (reach := _reach(node)) is not None]
    return max(found, default=None)


def _reach(node: ast.AST) -> float | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        inner = node.left
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add | ast.Sub):
            return _number(inner.right)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call):
        called = node.value.func
        if isinstance(called, ast.Name) and called.id == "sorted":
            return _rank(node.slice)
    return None


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value < 1000:
        return float(node.value)
    return None


def _rank(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _number(node.operand)
    first = _number(node)
    return None if first is None else first + 1


def difficulty(designs: Sequence[tuple[str, Mapping[str, float]]]) -> list[float | None]:
    """Return one number a design: how hard it is beside the others of its family.

    Each lever is measured in standard deviations from its mean over the family, so that neither the
    mix of families nor a lever's unit counts; a design's number is the mean over its levers. A
    lever that never moves in a family counts as 0 there; a design without levers has no number.

    Args:
        designs: (family, levers) of each.

    >>> difficulty([("A", {"rounds": 1}), ("A", {"rounds": 3}), ("B", {"rounds": 9}), ("B", {})])
    [-1.0, 1.0, 0.0, None]
    """
    scale: dict[tuple[str, str], tuple[float, float]] = {}
    for family in {family for family, _ in designs}:
        own = [found for name, found in designs if name == family]
        for lever in {lever for found in own for lever in found}:
            scale[family, lever] = _mean_and_spread(f[lever] for f in own if lever in f)
    return [
        sum(_standard(value, *scale[family, lever]) for lever, value in found.items()) / len(found)
        if found
        else None
        for family, found in designs
    ]


def _mean_and_spread(values: Iterable[float]) -> tuple[float, float]:
    data = np.asarray(list(values), dtype=np.float64)
    return float(data.mean()), float(data.std())


def _standard(value: float, mean: float, spread: float) -> float:
    return (value - mean) / spread if spread > 0 else 0.0
