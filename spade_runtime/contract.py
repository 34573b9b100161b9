"""Reads a source against the contract without running it: class, kind, dialect, metadata.

Contract.md sections 1 and 3 (SPD201 to SPD205). Runs in the child and in the parent alike, on the
syntax tree only.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from spade_runtime.mends import StaticFinding as ContractFinding
from spade_runtime.signatures import (
    Method,
    default_of,
    parameters,
    reset_problem,
    returned,
    step_problem,
)
from spade_runtime.taxonomy import GAME_SKILLS, TOOL_SKILLS

DEFAULT_MAX_TURNS = 20
MAX_TURNS = 100
TITLE_CHARS = 200
_CONTRACT_BASES = ("TextEnv", "ToolEnv")


@dataclass(slots=True)
class ContractReading:
    """What a source says of itself.

    Attributes:
        class_name: the environment class; None where there is none or several.
        kind: `tool_use` where it extends `ToolEnv` (`ToolUseBaseEnv` in the published dialect).
        dialect: the form in which it is written.
        title: its title, by default the first line of its docstring.
        skill: the skill it names; None where it names none.
        max_turns: its own limit in agent messages, 1 to 100.
        version: its version, from 0.
        docstring: the class's docstring, cleaned.
        has_solution: whether a `solution` method is there.
        findings: SPD201 to SPD205 in the order of the lines.
    """

    class_name: str | None = None
    kind: Literal["game", "tool_use"] = "game"
    dialect: Literal["contract", "published", "gem"] = "contract"
    title: str = ""
    skill: str | None = None
    max_turns: int = DEFAULT_MAX_TURNS
    version: int = 0
    docstring: str | None = None
    has_solution: bool = False
    findings: list[ContractFinding] = field(default_factory=list)


def read(source: ast.Module | str) -> ContractReading:
    r"""Read a source, or its syntax tree as the policy leaves it.

    Raises:
        SyntaxError: a text is no Python; the syntax gate comes first.

    >>> read("class CrateEnv:\n def reset(self, seed=None): ...\n def step(self, a): ...").kind
    'game'
    """
    tree: Any = source
    if isinstance(source, str):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = compile(
                source.removeprefix("\ufeff"),
                "<environment>",
                "exec",
                ast.PyCF_ONLY_AST,
                dont_inherit=True,
            )
    return _Reader(tree).read()


class _Reader:
    def __init__(self, tree: ast.Module) -> None:
        self.classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
        self.imports = dict(_imports(tree))
        self.reading = ContractReading()

    def read(self) -> ContractReading:
        cls = self._environment_class()
        if cls is None:
            return self.reading
        lineage = [cls, *self._ancestors(cls)]
        bases = {base for c in lineage for base in self._bases(c)}
        self.reading.class_name = cls.name
        self.reading.docstring = ast.get_docstring(cls)
        self.reading.kind = "tool_use" if bases & {"ToolEnv", "ToolUseBaseEnv"} else "game"
        self.reading.dialect = self._dialect(lineage, bases)
        self.reading.has_solution = _method(lineage, "solution") is not None
        self._metadata(cls, lineage)
        self._signatures(cls, lineage, bases)
        self.reading.findings.sort(key=lambda f: (f.line or 0, f.column or 0))
        return self.reading

    def _found(self, code: str, node: Any, message: str) -> None:
        line, column = getattr(node, "lineno", None), getattr(node, "col_offset", None)
        self.reading.findings.append(
            ContractFinding(code, message, line, None if column is None else column + 1)
        )

    # The class

    def _environment_class(self) -> ast.ClassDef | None:
        public = [c for n, c in self.classes.items() if n[0] != "_"]
        # GEM registers classes by path, so there the base tells, whatever the name ends in.
        named = [c for c in public if c.name.endswith("Env") and c.name != "Env"] or [
            c for c in public if "gem.Env" in self._bases(c)
        ]
        extended = {a.name for c in named for a in self._ancestors(c)}
        left = [c for c in named if c.name not in extended]
        if len(left) == 1:
            return left[0]
        if not left:
            self._found("SPD201", *self._missing_class())
            return None
        names = ", ".join(c.name for c in left)
        self._found(
            "SPD202",
            left[1],
            f"expected one public class whose name ends in Env, found {len(left)} ({names}); "
            "rename the helpers, or let one extend the others",
        )
        return None

    def _missing_class(self) -> tuple[ast.AST | None, str]:
        for name, cls in self.classes.items():
            if _method([cls], "reset") and _method([cls], "step"):
                word = name.lstrip("_").removesuffix("Env").removesuffix("Environment")
                return cls, (
                    f"no environment class: {name!r} has reset and step, but its name is not "
                    f"public or is no word and Env; call it {(word or 'Task') + 'Env'!r}"
                )
        return None, (
            "no environment class: define one public class at the top level whose name ends in "
            "Env, with reset(seed) and step(action)"
        )

    def _bases(self, cls: ast.ClassDef) -> list[str]:
        """Names of the bases, as the modules that they were imported from call them."""
        found = []
        for base in cls.bases:
            node = base.value if isinstance(base, ast.Subscript) else base
            text = ast.unparse(node)
            root, _, rest = text.partition(".")
            if root in self.classes:
                found.append(text)
            elif root in self.imports:
                full = f"{self.imports[root]}.{rest}" if rest else self.imports[root]
                found.append(_short(full))
            else:
                found.append(text)
        return found

    def _ancestors(self, cls: ast.ClassDef) -> list[ast.ClassDef]:
        """The classes of this file that a class extends, nearest first."""
        found: list[ast.ClassDef] = []
        waiting = [cls]
        while waiting:
            for base in self._bases(waiting.pop(0)):
                parent = self.classes.get(base)
                if parent is not None and parent is not cls and parent not in found:
                    found.append(parent)
                    waiting.append(parent)
        return found

    def _dialect(
        self, lineage: list[ast.ClassDef], bases: set[str]
    ) -> Literal["contract", "published", "gem"]:
        if "gem.Env" in bases:
            return "gem"
        if "ToolUseBaseEnv" in bases:
            return "published"
        if bases & set(_CONTRACT_BASES) or _value(lineage, "skill") is not None:
            return "contract"
        init, reset = _method(lineage, "__init__"), _method(lineage, "reset")
        if init is None or reset is None or "max_turns" not in parameters(init):
            return "contract"
        # The released pools' form: __init__(max_turns=..., **kwargs) that resets itself, and a
        # reset that gives a bare text. Any of the three shows it.
        resets_itself = any(
            isinstance(n, ast.Call) and ast.unparse(n.func) == "self.reset" for n in ast.walk(init)
        )
        open_ended = isinstance(init, Method) and init.args.kwarg is not None
        pairs = [isinstance(v, ast.Tuple) and len(v.elts) == 2 for v in returned(reset)]
        if resets_itself or open_ended or (pairs and not all(pairs)):
            return "published"
        return "contract"

    # Metadata

    def _metadata(self, cls: ast.ClassDef, lineage: list[ast.ClassDef]) -> None:
        reading = self.reading
        turns = self._literal(lineage, "max_turns", int)
        if turns is None and reading.dialect != "contract":
            own = default_of(_method(lineage, "__init__"), "max_turns")
            turns = min(own, MAX_TURNS) if own is not None and own > 0 else None
        if isinstance(turns, int):
            reading.max_turns = turns
        version = self._literal(lineage, "version", int)
        reading.version = version if isinstance(version, int) else 0
        reading.skill = self._literal(lineage, "skill", str)
        title = self._literal(lineage, "title", str)
        first = (reading.docstring or "").strip().partition("\n")[0].strip()
        reading.title = (title or first or _spaced(cls.name.removesuffix("Env")))[:TITLE_CHARS]
        if reading.dialect == "published":
            return
        self._taxonomy(cls)
        if not reading.docstring:
            self._found("SPD205", cls, f"{cls.name} has no docstring; say in a line what it asks")

    def _taxonomy(self, cls: ast.ClassDef) -> None:
        reading = self.reading
        skills = TOOL_SKILLS if reading.kind == "tool_use" else GAME_SKILLS
        if reading.skill is None:
            said = any(f.code == "SPD204" and "skill" in f.message for f in reading.findings)
            if reading.dialect == "contract" and not said:
                self._found("SPD205", cls, f"{cls.name} names no skill; one of {', '.join(skills)}")
        elif reading.skill not in skills:
            self._found(
                "SPD205",
                _value([cls], "skill") or cls,
                f"skill {reading.skill!r} is not one of {', '.join(skills)}",
            )

    def _literal(self, lineage: list[ast.ClassDef], name: str, kind: type) -> Any:
        """The literal value of a class attribute; None where there is none that counts."""
        node = _value(lineage, name)
        if node is None:
            return None
        try:
            value = ast.literal_eval(node) if isinstance(node, ast.expr) else ...
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            value = ...
        wanted = {
            "max_turns": f"an integer from 1 to {MAX_TURNS}",
            "version": "an integer from 0",
        }.get(name, "a non-empty text")
        if value is ...:
            shown = ast.unparse(node)[:60] if isinstance(node, ast.expr) else "a method"
            self._found("SPD204", node, f"{name} must be {wanted}, written as a literal: {shown!r}")
            return None
        fine = type(value) is kind
        if fine and name == "max_turns":
            fine = 1 <= value <= MAX_TURNS
        elif fine:
            fine = value >= 0 if kind is int else bool(value.strip())
        if not fine:
            self._found("SPD204", node, f"{name} must be {wanted}, got {repr(value)[:60]}")
            return None
        return value

    # Signatures

    def _signatures(self, cls: ast.ClassDef, lineage: list[ast.ClassDef], bases: set[str]) -> None:
        if "ToolEnv" in bases:
            for name in ("reset", "step"):
                node = _method(lineage, name)
                if node is not None:
                    self._found(
                        "SPD203",
                        node,
                        f"a ToolEnv may not define {name}: setup(rng), user_turns() and the tools "
                        "are all that it writes",
                    )
            return
        given = {"step"} if "ToolUseBaseEnv" in bases else set()
        for name in ("reset", "step"):
            node = _method(lineage, name)
            if node is None:
                unknown = [b for b in bases if b not in self.classes and b in self.imports]
                if name not in given and not unknown:
                    self._found("SPD203", cls, f"{cls.name} has no method {name}")
            elif isinstance(node, Method):
                self._callable(node, name)

    def _callable(self, node: Method, name: str) -> None:
        if any(ast.unparse(d) != "staticmethod" for d in node.decorator_list):
            # What another decorator makes of it shows when it runs.
            return
        loose = self.reading.dialect != "contract"
        problem = reset_problem(node, loose=loose) if name == "reset" else step_problem(node)
        if problem:
            form = "reset(self, seed=None)" if name == "reset" else "step(self, action)"
            self._found("SPD203", node, f"{name} can't be called: {problem}; write `def {form}`")


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                yield alias.asname or root, alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module or ''}.{alias.name}"


def _short(full: str) -> str:
    if full in ("gem.Env", "gem.core.Env"):
        return "gem.Env"
    if full.startswith("spade_runtime."):
        return full.rpartition(".")[2]
    return full.rpartition(".")[2] if full.endswith("ToolUseBaseEnv") else full


def _value(lineage: list[ast.ClassDef], name: str) -> ast.expr | Method | None:
    """The node that gives a class attribute its value, from the nearest class that has it."""
    for cls in lineage:
        found: ast.expr | Method | None = None
        for node in cls.body:
            if isinstance(node, ast.Assign):
                if any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                    found = node.value
            elif isinstance(node, ast.AnnAssign):
                if isinstance(node.target, ast.Name) and node.target.id == name and node.value:
                    found = node.value
            elif isinstance(node, Method) and node.name == name:
                decorators = [ast.unparse(d) for d in node.decorator_list]
                if "property" in decorators:
                    found = node
        if found is not None:
            return found
    return None


def _method(lineage: list[ast.ClassDef], name: str) -> Method | ast.stmt | None:
    for cls in lineage:
        for node in reversed(cls.body):
            if isinstance(node, Method) and node.name == name:
                return node
            if isinstance(node, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == name for t in node.targets
            ):
                return node
    return None


def _spaced(name: str) -> str:
    """Put spaces between the words of a class name.

    >>> _spaced("CrateShuffle2D")
    'Crate Shuffle 2D'
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
