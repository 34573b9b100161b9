"""The static policy's walk over a syntax tree.

A subclass of RestrictedPython's transformer that keeps what is worth most of it (a node without a
rule is refused, so new syntax is refused until somebody has looked at it) and leaves native
opcodes: names and constructs are checked while compiling, nothing is added to attribute access,
items or iteration. The only rewriting is of the attributes `format`, `format_map` and `obj`, whose
meaning depends on the object.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from RestrictedPython.transformer import RestrictingNodeTransformer

from spade_runtime.curated import MODULES, OPTIONAL_MODULES, STANDING_MODULES, words
from spade_runtime.guards import (
    CLASS_METHODS,
    GUARDED_ATTRIBUTES,
    INTERNAL_ATTRIBUTES,
    PolicyViolation,
    is_dunder,
    refusal,
    refused_attribute,
    static_format_check,
)
from spade_runtime.views import FORBIDDEN_BUILTINS, HOOK_PREFIX, exists_but_hidden

# Dunder names that a module or class may hold as plain data.
PLAIN_DUNDERS = frozenset(
    words(
        "__name__ __file__ __doc__ __slots__ __all__ __version__ __author__ __authors__ __email__ "
        "__license__ __copyright__ __credits__ __status__ __maintainer__ __date__ __title__ "
        "__description__ __summary__ __url__ __debug__"
    )
)
WRITABLE_DUNDERS = frozenset(("__name__", "__qualname__", "__doc__"))

_LEAVES = (
    ast.Load, ast.Store, ast.Del, ast.Constant, ast.Pass, ast.Break, ast.Continue,
    *ast.operator.__subclasses__(), *ast.unaryop.__subclasses__(),
    *ast.boolop.__subclasses__(), *ast.cmpop.__subclasses__(),
)  # fmt: skip
_LEAF_TYPES = frozenset(_LEAVES)
# Nodes without a rule of their own: only what they contain is checked.
_PLAIN = words(
    "Expr Expression Return Delete Assign AugAssign For While If With withitem Raise Try Assert "
    "BoolOp BinOp UnaryOp IfExp Dict Set List Tuple ListComp SetComp DictComp GeneratorExp "
    "comprehension Yield YieldFrom Compare FormattedValue JoinedStr TemplateStr Interpolation "
    "Subscript Starred Slice arguments Match match_case MatchValue MatchSingleton MatchSequence "
    "MatchOr Lambda NamedExpr TypeAlias"
)

_BUILTIN_MENDS = {
    "eval": "parse the text yourself, or use ast.literal_eval for literals",
    "exec": "write the code out",
    "compile": "write the code out; re.compile is allowed",
    "open": "put the data into the source: no file is ever read",
    "input": "the agent's text comes as the argument of step(action)",
    "__import__": "use an import statement",
    "globals": "use a name at module level, or a dict of your own",
    "locals": "use the variables by name, or a dict of your own",
    "vars": "use the attributes by name, or keep the data in a dict",
    "memoryview": "use bytes or bytearray",
    "exit": "return terminated=True from step instead",
    "quit": "return terminated=True from step instead",
}
_IMPORT_MENDS = {
    "os": "no files, processes or variables exist here; put the data into the source",
    "pathlib": "no files exist here; put the data into the source",
    "sys": "remove it; recursion, exit and streams are the runtime's",
    "logging": "remove the logging calls, or use print",
    "secrets": "use random.Random(seed)",
    "pydantic": "use dataclasses",
    "attr": "use dataclasses",
    "typing_extensions": "import the name from typing",
    "gymnasium": "a plain class with reset and step needs no base class",
    "gym": "a plain class with reset and step needs no base class",
    "yaml": "use json, or put the data into the source",
    "threading": "write it without threads",
    "asyncio": "write it without async",
    "subprocess": "no processes exist here",
    "traceback": "use the exception's text",
    "warnings": "remove it",
    "locale": "format the values yourself",
    "sympy": "compute with fractions, math or plain integers",
}


@dataclass(slots=True)
class PolicyFinding:
    """One thing that the static policy found.

    Attributes:
        code: SPD003 or SPD101 to SPD105.
        message: one line that says what to change.
        line: line of the source, from 1.
        column: column of the line, from 1.
    """

    code: str
    message: str
    line: int | None = None
    column: int | None = None


@dataclass(slots=True)
class _Import:
    """One name that an import outside the list would bind."""

    module: str
    bound: str
    text: str
    node: ast.stmt


class _Scope:
    """Names bound in one function, class or module."""

    __slots__ = ("bound", "is_class")

    def __init__(self, is_class: bool = False) -> None:
        self.bound: set[str] = set()
        self.is_class = is_class


class EnvTransformer(RestrictingNodeTransformer):  # type: ignore[misc]
    """Checks a tree and rewrites the attributes that need a guard.

    Attributes:
        findings: what was found so far; `finish` adds what only the whole file can tell.
        uses: roots of the allowed modules that are imported.
        loads: the names that are read, with the first node that does.
    """

    def __init__(self) -> None:
        super().__init__()
        self.findings: list[PolicyFinding] = []
        self.uses: set[str] = set()
        self.stubs: list[str] = []
        self.loads: dict[str, ast.Name] = {}
        self._methods: dict[type, Callable[[Any], Any]] = {}
        self._scopes: list[_Scope] = [_Scope()]
        self._aliases: dict[str, str] = {name: name for name in STANDING_MODULES}
        self._outside: list[_Import] = []
        self._attributes_of: dict[str, str] = {}
        self._builtins: list[tuple[ast.Name, list[_Scope]]] = []
        self._hidden: list[tuple[ast.Attribute, str, list[_Scope]]] = []
        self._guarded_fields: list[str] = []
        self._positional: list[ast.AST] = []

    # The walk

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
                    self._visit_list(value)
            elif isinstance(value, ast.AST) and type(value) not in _LEAF_TYPES:
                new = self.visit(value)
                if new is not value:
                    setattr(node, field, new)
        return node

    def _visit_list(self, values: list[Any]) -> None:
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
            PolicyFinding(
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
        self._attributes_of.setdefault(name, node.attr)
        module = self._aliases.get(name)
        if module is not None and exists_but_hidden(module, node.attr):
            self._hidden.append((node, module, self._visible()))

    def _guarded(self, node: ast.Attribute) -> Any:
        value = node.value
        if node.attr != "obj" and type(value) is ast.Constant and isinstance(value.value, str):
            # A literal template is settled here, and costs nothing when it runs.
            try:
                static_format_check(value.value)
            except PolicyViolation as refused:
                self.found("SPD103", node, str(refused))
            return node
        call = ast.Call(
            func=ast.Name(f"{HOOK_PREFIX}special", ast.Load()),
            args=[value, ast.Constant(node.attr)],
            keywords=[],
        )
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_Call(self, node: ast.Call) -> Any:
        """Check literal names that are passed to `getattr` and its like."""
        called = node.func
        name = called.id if type(called) is ast.Name else getattr(called, "attr", None)
        if name in ("getattr", "setattr", "hasattr", "delattr"):
            self._literal_names(node.args[1:2])
        elif name in ("attrgetter", "methodcaller"):
            self._literal_names(node.args if name == "attrgetter" else node.args[:1])
        elif name == "type" and type(called) is ast.Name and len(node.args) == 3:
            self.found("SPD104", node, "type() makes no classes here; use a class statement")
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
        self._visit_list(node.body)
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
        """Check a captured rest of a mapping."""
        self.bind(node, node.rest)
        return self.node_contents_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> Any:
        """Check the attributes that a class pattern reads."""
        for name in node.kwd_attrs:
            if refused_attribute(name) or name in GUARDED_ATTRIBUTES:
                self.found("SPD103", node, f"a class pattern may not read the attribute {name!r}")
        if node.patterns:
            self._positional.append(node)
        return self.node_contents_visit(node)

    # Imports

    def visit_Import(self, node: ast.Import) -> Any:
        """Check `import a, b.c as d`."""
        kept, stubs = [], []
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            self.bind(node, bound)
            if alias.name in MODULES or alias.name in OPTIONAL_MODULES:
                self.uses.add(alias.name.partition(".")[0])
                self._aliases[bound] = alias.name if alias.asname else bound
                kept.append(alias)
            else:
                self._outside.append(_Import(alias.name, bound, f"import {alias.name}", node))
                stubs.append(self._stub(node, bound, alias.name))
        node.names = kept
        return [node, *stubs] if kept else stubs

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        """Check `from a import b as c`."""
        module = "." * node.level + (node.module or "")
        inside = module in MODULES or module in OPTIONAL_MODULES
        kept, stubs = [], []
        for alias in node.names:
            text = f"from {module} import {alias.name}"
            if alias.name == "*":
                self.found("SPD104", node, f"`{text}` is not allowed; name what you need")
                continue
            bound = alias.asname or alias.name
            self.bind(node, bound)
            if not inside or exists_but_hidden(module, alias.name):
                self._outside.append(_Import(module, bound, text, node))
                stubs.append(self._stub(node, bound, f"{module}.{alias.name}"))
                continue
            if f"{module}.{alias.name}" in MODULES | OPTIONAL_MODULES:
                self._aliases[bound] = f"{module}.{alias.name}"
            self.uses.add(module.partition(".")[0])
            kept.append(alias)
        node.names = kept
        return [node, *stubs] if kept else (stubs or ast.copy_location(ast.Pass(), node))

    def _stub(self, node: ast.stmt, bound: str, module: str) -> ast.stmt:
        call = ast.Call(
            func=ast.Name(f"{HOOK_PREFIX}stub", ast.Load()),
            args=[ast.Constant(module)],
            keywords=[],
        )
        stub = ast.Assign(targets=[ast.Name(bound, ast.Store())], value=call)
        return ast.fix_missing_locations(ast.copy_location(stub, node))

    # The whole file

    def finish(self) -> None:
        """Settle what needs the whole file: builtins, imports, patterns."""
        for node, scopes in self._builtins:
            if not any(node.id in scope.bound for scope in scopes):
                mend = _BUILTIN_MENDS.get(node.id, "remove it")
                self.found("SPD102", node, f"{node.id}() is not available to environments; {mend}")
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
        for outside in self._outside:
            self._settle_import(outside)
        if self.loads.keys() & {"np", "numpy"} and not self._scopes[0].bound & {"np", "numpy"}:
            # Published pools use numpy without importing it.
            self.uses.add("numpy")
        if self._guarded_fields and self._positional:
            self.found(
                "SPD103",
                self._positional[0],
                f"positional class patterns are not allowed beside a field named "
                f"{self._guarded_fields[0]!r}; name the attributes in the pattern",
            )

    def _settle_import(self, outside: _Import) -> None:
        use = self.loads.get(outside.bound)
        root = outside.module.partition(".")[0]
        if use is None:
            self.stubs.append(outside.module)
            self.found(
                "SPD105",
                outside.node,
                f"`{outside.text}` is outside the allowed modules but never used; remove it",
            )
            return
        attribute = self._attributes_of.get(outside.bound)
        name = f"{outside.bound}.{attribute}" if attribute else outside.bound
        where = f"`{name}` is used on line {use.lineno}"
        if outside.module.startswith("."):
            mend = "nothing outside this file is read; put the code into this file"
        elif root in MODULES or root in OPTIONAL_MODULES:
            mend = f"use what {root!r} offers to environments"
        else:
            mend = _IMPORT_MENDS.get(root, "use the listed standard modules instead")
        self.found("SPD101", outside.node, f"`{outside.text}` is not allowed ({where}); {mend}")
