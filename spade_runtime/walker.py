"""The walk under the static policy: every node by a rule, and none without one.

RestrictedPython's transformer gives what is worth most here, the refusal of a node that nobody has
looked at. The walk itself is written for speed, since each child checks its source anew.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from RestrictedPython.transformer import RestrictingNodeTransformer

from spade_runtime.curated import words
from spade_runtime.mends import StaticFinding

_LEAVES = (
    ast.Load, ast.Store, ast.Del, ast.Constant, ast.Pass, ast.Break, ast.Continue,
    *ast.operator.__subclasses__(), *ast.unaryop.__subclasses__(),
    *ast.boolop.__subclasses__(), *ast.cmpop.__subclasses__(),
)  # fmt: skip
_LEAF_TYPES = frozenset(_LEAVES)
# Nodes without a rule of their own: only what they contain is checked.
_PLAIN = words(
    "Expr Expression Return Delete Assign For While If With withitem Raise Try Assert "
    "BoolOp BinOp UnaryOp IfExp Dict Set List Tuple ListComp SetComp DictComp GeneratorExp "
    "comprehension Yield YieldFrom Compare FormattedValue JoinedStr TemplateStr Interpolation "
    "Subscript Starred Slice arguments Match MatchSingleton MatchSequence "
    "MatchOr Lambda NamedExpr TypeAlias"
)


class Walker(RestrictingNodeTransformer):  # type: ignore[misc]
    """Visits a tree by the rules of a subclass (`visit_<Node>`).

    Attributes:
        findings: what was found so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.findings: list[StaticFinding] = []
        self._methods: dict[type, Callable[[Any], Any]] = {}

    def visit(self, node: ast.AST) -> Any:
        """Visit a node by the rule of its type."""
        kind = type(node)
        method = self._methods.get(kind)
        if method is None:
            plain = kind.__name__ in _PLAIN
            named = None if plain else getattr(self, f"visit_{kind.__name__}", self.generic_visit)
            method = self._methods[kind] = named or self.node_contents_visit
        return method(node)

    def node_contents_visit(self, node: Any) -> Any:
        """Visit what a node contains."""
        for field in node._fields:
            value = getattr(node, field, None)
            if type(value) is list:
                if value:
                    self.visit_list(value)
            elif isinstance(value, ast.AST) and type(value) not in _LEAF_TYPES:
                new = self.visit(value)
                if new is not value:
                    setattr(node, field, new)
        return node

    def visit_list(self, values: list[Any]) -> None:
        """Visit the nodes of a list, which a rule may replace by several."""
        position = 0
        while position < len(values):
            value = values[position]
            if isinstance(value, ast.AST) and type(value) not in _LEAF_TYPES:
                new = self.visit(value)
                if type(new) is list:
                    values[position : position + 1] = new
                    position += len(new)
                    continue
                values[position] = new
            position += 1

    def generic_visit(self, node: ast.AST) -> Any:
        """Refuse a node without a rule."""
        return self.not_allowed(node)

    def found(self, code: str, node: Any, message: str) -> None:
        """Add a finding at a node's place."""
        column = getattr(node, "col_offset", None)
        self.findings.append(
            StaticFinding(
                code, message, getattr(node, "lineno", None), None if column is None else column + 1
            )
        )

    def not_allowed(self, node: ast.AST) -> Any:
        """Refuse a construct outside the contract (SPD104)."""
        name = type(node).__name__
        known = {
            "AsyncFunctionDef": "`async def` is not allowed; write a plain `def`",
            "AsyncFor": "`async for` is not allowed; write a plain `for`",
            "AsyncWith": "`async with` is not allowed; write a plain `with`",
            "Await": "`await` is not allowed; call the function directly",
            "TryStar": "`except*` is not allowed; use `except`",
        }
        self.found("SPD104", node, known.get(name, f"the construct {name} is not allowed"))
        return node
