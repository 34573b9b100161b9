"""The rules of the static policy: names, attributes, functions, classes and patterns.

Names and constructs are checked while compiling, and native opcodes are left: nothing is added to
attribute access, items or iteration. The only rewriting is of the attributes `format`,
`format_map` and `obj`, whose meaning depends on the object, and of unused imports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, TypeGuard

from spade_runtime.curated import words
from spade_runtime.guards import (
    CLASS_METHODS,
    GUARDED_ATTRIBUTES,
    INTERNAL_ATTRIBUTES,
    TEMPLATE_METHODS,
    PolicyViolation,
    is_dunder,
    refusal,
    refused_attribute,
    static_format_check,
)
from spade_runtime.importrules import ImportLedger
from spade_runtime.mends import BUILTIN_MENDS
from spade_runtime.views import FORBIDDEN_BUILTINS, HOOK_PREFIX
from spade_runtime.walker import Walker

# Dunder names that a module or class may hold as plain data.
PLAIN_DUNDERS = frozenset(
    words(
        "__name__ __file__ __doc__ __slots__ __all__ __version__ __author__ __authors__ __email__ "
        "__license__ __copyright__ __credits__ __status__ __maintainer__ __date__ __title__ "
        "__description__ __summary__ __url__ __debug__"
    )
)
WRITABLE_DUNDERS = frozenset(("__name__", "__qualname__", "__doc__"))


def _is_guarded(node: ast.expr) -> TypeGuard[ast.Attribute]:
    return type(node) is ast.Attribute and node.attr in GUARDED_ATTRIBUTES


class _Scope:
    """Names bound in one function, class or module."""

    __slots__ = ("bound", "is_class")

    def __init__(self, is_class: bool = False) -> None:
        self.bound: set[str] = set()
        self.is_class = is_class


class EnvTransformer(Walker):
    """Checks a tree and rewrites the attributes that need a guard.

    Attributes:
        findings: what was found; `finish` adds what only the whole file can tell.
        imports: the file's imports.
        loads: the names that are read, with the first node that does.
    """

    def __init__(self) -> None:
        super().__init__()
        self.imports = ImportLedger()
        self.loads: dict[str, ast.Name] = {}
        self._scopes: list[_Scope] = [_Scope()]
        self._builtins: list[tuple[ast.Name, list[_Scope]]] = []
        self._hidden: list[tuple[ast.Attribute, str, list[_Scope]]] = []
        self._made_classes: list[tuple[ast.Name, list[_Scope]]] = []
        self._guarded_fields: list[str] = []
        self._positional: list[ast.AST] = []

    # Names

    def bind(self, node: ast.AST, name: str | None) -> None:
        """Check and record a name that the code binds."""
        if not name:
            return
        self._scopes[-1].bound.add(name)
        if name[0] == "_":
            self._check_underscored(node, name)

    def _check_underscored(self, node: ast.AST, name: str) -> None:
        if name.startswith(HOOK_PREFIX):
            self.found("SPD103", node, f"names that begin with {HOOK_PREFIX!r} are reserved")
        elif is_dunder(name) and name not in PLAIN_DUNDERS and name not in CLASS_METHODS:
            self.found("SPD103", node, refusal(name).replace("attribute", "name", 1))

    def visit_Name(self, node: ast.Name) -> Any:
        """Check a name; forbidden builtins are settled when all bindings are known."""
        name = node.id
        if type(node.ctx) is not ast.Load:
            self.bind(node, name)
        else:
            if name not in self.loads:
                self.loads[name] = node
            if name in FORBIDDEN_BUILTINS:
                self._builtins.append((node, self._visible()))
            elif name[0] == "_":
                self._check_underscored(node, name)
        return node

    def _visible(self) -> list[_Scope]:
        inner = self._scopes[-1]
        return [s for s in self._scopes if s is inner or not s.is_class]

    def visit_arg(self, node: ast.arg) -> Any:
        """Check a parameter."""
        self.bind(node, node.arg)
        return self.node_contents_visit(node)

    def visit_Global(self, node: ast.Global) -> Any:
        """Check the names of `global`."""
        for name in node.names:
            self._check_underscored(node, name)
            self._scopes[0].bound.add(name)
        return node

    def visit_Nonlocal(self, node: ast.Nonlocal) -> Any:
        """Check the names of `nonlocal`."""
        for name in node.names:
            self._check_underscored(node, name)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        """Check the name of `except ... as`."""
        self.bind(node, node.name)
        return self.node_contents_visit(node)

    def visit_keyword(self, node: ast.keyword) -> Any:
        """Check a keyword argument."""
        if node.arg and is_dunder(node.arg):
            self.found("SPD103", node, refusal(node.arg))
        return self.node_contents_visit(node)

    def _visit_type_parameter(self, node: Any) -> Any:
        self.bind(node, node.name)
        return self.node_contents_visit(node)

    visit_TypeVar = visit_ParamSpec = visit_TypeVarTuple = _visit_type_parameter

    # Attributes and calls

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Check an attribute; reading a guarded one becomes a call of its guard."""
        self.node_contents_visit(node)
        name = node.attr
        reading = type(node.ctx) is ast.Load
        if name in INTERNAL_ATTRIBUTES:
            self.found("SPD103", node, refusal(name))
        elif name in GUARDED_ATTRIBUTES and reading:
            return self._guarded(node)
        elif name.startswith("__") and is_dunder(name):
            if refused_attribute(name) if reading else name not in WRITABLE_DUNDERS:
                self.found("SPD103", node, refusal(name))
        elif name.startswith(HOOK_PREFIX):
            self._check_underscored(node, name)
        elif type(node.value) is ast.Name:
            self._note_module_attribute(node, node.value.id)
        return node

    def _note_module_attribute(self, node: ast.Attribute, name: str) -> None:
        module = self.imports.note_attribute(name, node.attr)
        if module is not None:
            self._hidden.append((node, module, self._visible()))

    def _guarded(self, node: ast.Attribute) -> Any:
        value = node.value
        text = value.value if type(value) is ast.Constant else None
        if type(text) is str and node.attr in TEMPLATE_METHODS:
            # A literal template is settled here, and costs nothing when it runs.
            try:
                static_format_check(text)
            except PolicyViolation as refused:
                self.found("SPD103", node, str(refused))
            return node
        call = ast.Call(
            func=ast.Name(f"{HOOK_PREFIX}special", ast.Load()),
            args=[value, ast.Constant(node.attr)],
            keywords=[],
        )
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """Check `a.b += c`; a guarded attribute is read by its guard here too."""
        self.node_contents_visit(node)
        target = node.target
        if not _is_guarded(target):
            return node
        how = type(node.op).__name__
        call = ast.Call(
            func=ast.Name(f"{HOOK_PREFIX}augment", ast.Load()),
            args=[target.value, ast.Constant(target.attr), ast.Constant(how), node.value],
            keywords=[],
        )
        return ast.fix_missing_locations(ast.copy_location(ast.Expr(call), node))

    def visit_Call(self, node: ast.Call) -> Any:
        """Check literal names that are passed to `getattr` and its like."""
        called = node.func
        name = called.id if type(called) is ast.Name else getattr(called, "attr", None)
        if name in ("getattr", "setattr", "hasattr", "delattr"):
            self._literal_names(node.args[1:2])
        elif name in ("attrgetter", "methodcaller"):
            self._literal_names(node.args if name == "attrgetter" else node.args[:1])
        elif name == "type" and type(called) is ast.Name and len(node.args) == 3:
            self._made_classes.append((called, self._visible()))
        return self.node_contents_visit(node)

    def _literal_names(self, arguments: Iterable[ast.expr]) -> None:
        for argument in arguments:
            if type(argument) is ast.Constant and isinstance(argument.value, str):
                for part in argument.value.split("."):
                    if refused_attribute(part):
                        self.found("SPD103", argument, refusal(part))

    # Functions and classes

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """Check a function and its name."""
        self.bind(node, node.name)
        self._scopes.append(_Scope())
        self.node_contents_visit(node)
        self._scopes.pop()
        return node

    def visit_deferred(self, node: ast.FunctionDef, body: list[ast.stmt]) -> None:
        """Give a function its body back, and check it."""
        node.body = body
        scope = _Scope()
        scope.bound.update(a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg))
        self._scopes.append(scope)
        self.visit_list(node.body)
        self._scopes.pop()

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        """Check a lambda."""
        self._scopes.append(_Scope())
        self.node_contents_visit(node)
        self._scopes.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        """Check a class: no metaclass, no field that a pattern would read past a guard."""
        self.bind(node, node.name)
        for keyword in node.keywords:
            if keyword.arg == "metaclass":
                self.found(
                    "SPD104", keyword, "metaclasses are not allowed; extend ABC instead of ABCMeta"
                )
        for base in node.bases:
            if type(base) is ast.Name and base.id == "type":
                self.found("SPD104", base, "metaclasses are not allowed; write a plain class")
        for statement in node.body:
            if type(statement) is ast.AnnAssign and type(statement.target) is ast.Name:
                field = statement.target.id
                if field in INTERNAL_ATTRIBUTES:
                    self.found("SPD103", statement, refusal(field))
                elif field in GUARDED_ATTRIBUTES:
                    self._guarded_fields.append(field)
        self._scopes.append(_Scope(is_class=True))
        self.node_contents_visit(node)
        self._scopes.pop()
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Allow annotated assignment."""
        return self.node_contents_visit(node)

    def visit_Module(self, node: ast.Module) -> Any:
        """Check a module."""
        return self.node_contents_visit(node)

    # Patterns

    def visit_MatchAs(self, node: ast.MatchAs) -> Any:
        """Check a captured name."""
        self.bind(node, node.name)
        return self.node_contents_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> Any:
        """Check a captured rest."""
        self.bind(node, node.name)
        return node

    def visit_MatchMapping(self, node: ast.MatchMapping) -> Any:
        """Check the keys of a mapping, and a captured rest."""
        self.bind(node, node.rest)
        for key in node.keys:
            self._compared(key)
        for pattern in node.patterns:
            self.visit(pattern)
        return node

    def visit_match_case(self, node: ast.match_case) -> Any:
        """Check a case; a dotted value that needs a guard becomes a condition.

        A pattern can hold no call, and hands what it read to the subject's own `__eq__`.
        """
        pattern = node.pattern
        if not (type(pattern) is ast.MatchValue and _is_guarded(pattern.value)):
            return self.node_contents_visit(node)
        subject = f"{HOOK_PREFIX}subject"
        value = self.visit(pattern.value)
        test: ast.expr = ast.Compare(ast.Name(subject, ast.Load()), [ast.Eq()], [value])
        if node.guard is not None:
            test = ast.BoolOp(ast.And(), [test, self.visit(node.guard)])
        self.visit_list(node.body)
        node.pattern = ast.copy_location(ast.MatchAs(name=subject), pattern)
        node.guard = ast.fix_missing_locations(ast.copy_location(test, pattern))
        return node

    def visit_MatchValue(self, node: ast.MatchValue) -> Any:
        """Check a dotted value inside a pattern."""
        self._compared(node.value)
        return node

    def _compared(self, node: ast.expr) -> None:
        if not _is_guarded(node):
            self.visit(node)
            return
        self.found(
            "SPD103", node, f"a pattern may not read the attribute {node.attr!r}; compare with =="
        )

    def _dotted(self, node: ast.expr) -> Any:
        if _is_guarded(node):
            self.node_contents_visit(node)
            return node
        return self.visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> Any:
        """Check the attributes that a class pattern reads."""
        for name in node.kwd_attrs:
            if refused_attribute(name) or name in GUARDED_ATTRIBUTES:
                self.found("SPD103", node, f"a class pattern may not read the attribute {name!r}")
        if node.patterns:
            self._positional.append(node)
        node.cls = self._dotted(node.cls)
        for pattern in (*node.patterns, *node.kwd_patterns):
            self.visit(pattern)
        return node

    # Imports

    def visit_Import(self, node: ast.Import) -> Any:
        """Check `import a, b.c as d`."""
        return self.imports.plain(node, self.bind)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        """Check `from a import b as c`."""
        if any(alias.name == "*" for alias in node.names):
            text = f"from {'.' * node.level}{node.module or ''} import *"
            self.found("SPD104", node, f"`{text}` is not allowed; name what you need")
        return self.imports.from_module(node, self.bind)

    # The whole file

    def finish(self) -> None:
        """Settle what needs the whole file: builtins, imports, patterns."""
        for node, scopes in self._builtins:
            if not any(node.id in scope.bound for scope in scopes):
                mend = BUILTIN_MENDS.get(node.id, "remove it")
                self.found("SPD102", node, f"{node.id}() is not available to environments; {mend}")
        for node, scopes in self._made_classes:
            if not any(node.id in scope.bound for scope in scopes):
                self.found("SPD104", node, "type() makes no classes here; use a class statement")
        for attribute, module, scopes in self._hidden:
            owner = attribute.value
            assert isinstance(owner, ast.Name)
            if not any(owner.id in scope.bound for scope in scopes[1:]):
                self.found(
                    "SPD103",
                    attribute,
                    f"{module}.{attribute.attr} is not available to environments; "
                    f"use the other names of {module!r}",
                )
        self.findings += self.imports.settle(self.loads)
        if self.loads.keys() & {"np", "numpy"} and not self._scopes[0].bound & {"np", "numpy"}:
            # Published pools use numpy without importing it.
            self.imports.uses.add("numpy")
        if self._guarded_fields and self._positional:
            self.found(
                "SPD103",
                self._positional[0],
                f"positional class patterns are not allowed beside a field named "
                f"{self._guarded_fields[0]!r}; name the attributes in the pattern",
            )
