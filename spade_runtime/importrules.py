"""What the static policy makes of import statements (SPD101, SPD105).

Whether an import outside the list is an error shows only at the end of the file: one that is never
used is a warning, and a stub takes its place (contract.md section 2).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from spade_runtime.curated import MODULES, OPTIONAL_MODULES, STANDING_MODULES
from spade_runtime.mends import IMPORT_MENDS, StaticFinding
from spade_runtime.views import HOOK_PREFIX, exists_but_hidden

Bind = Callable[[ast.AST, str], None]


@dataclass(slots=True)
class _Outside:
    """One name that an import outside the list would bind."""

    module: str
    bound: str
    text: str
    node: ast.stmt


class ImportLedger:
    """The imports of one file.

    Attributes:
        uses: roots of the allowed modules that are imported.
        stubs: modules outside the list that are never used; filled by `settle`.
        aliases: names that stand for an allowed module.
    """

    def __init__(self) -> None:
        self.uses: set[str] = set()
        self.stubs: list[str] = []
        self.aliases: dict[str, str] = {name: name for name in STANDING_MODULES}
        self._outside: list[_Outside] = []
        self._attributes: dict[str, str] = {}

    def plain(self, node: ast.Import, bind: Bind) -> list[ast.stmt]:
        """Check `import a, b.c as d`.

        Args:
            node: the statement; only its allowed names are kept.
            bind: told every name that the statement binds.

        Returns:
            The statements that take its place.
        """
        kept: list[ast.alias] = []
        stubs: list[ast.stmt] = []
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            bind(node, bound)
            if _listed(alias.name):
                self.uses.add(alias.name.partition(".")[0])
                self.aliases[bound] = alias.name if alias.asname else bound
                kept.append(alias)
            else:
                self._outside.append(_Outside(alias.name, bound, f"import {alias.name}", node))
                stubs.append(_stub(node, bound, alias.name))
        node.names = kept
        return [node, *stubs] if kept else stubs

    def from_module(self, node: ast.ImportFrom, bind: Bind) -> list[ast.stmt]:
        """Check `from a import b as c`; see `plain`."""
        module = "." * node.level + (node.module or "")
        kept: list[ast.alias] = []
        stubs: list[ast.stmt] = []
        for alias in node.names:
            if alias.name == "*":
                continue
            bound = alias.asname or alias.name
            bind(node, bound)
            if not _listed(module) or exists_but_hidden(module, alias.name):
                text = f"from {module} import {alias.name}"
                self._outside.append(_Outside(module, bound, text, node))
                stubs.append(_stub(node, bound, f"{module}.{alias.name}"))
                continue
            if _listed(f"{module}.{alias.name}"):
                self.aliases[bound] = f"{module}.{alias.name}"
            self.uses.add(module.partition(".")[0])
            kept.append(alias)
        node.names = kept
        if kept or stubs:
            return [node, *stubs] if kept else stubs
        return [ast.copy_location(ast.Pass(), node)]

    def note_attribute(self, name: str, attribute: str) -> str | None:
        """Note an attribute that is read of a name.

        Returns:
            The module that the name stands for, where the module hides this attribute.
        """
        self._attributes.setdefault(name, attribute)
        module = self.aliases.get(name)
        return module if module is not None and exists_but_hidden(module, attribute) else None

    def settle(self, loads: Mapping[str, ast.Name]) -> Iterator[StaticFinding]:
        """Give a finding for each import outside the list.

        Args:
            loads: the names that the file reads, with the first node that does.
        """
        for outside in self._outside:
            line, column = outside.node.lineno, outside.node.col_offset + 1
            use = loads.get(outside.bound)
            if use is None:
                self.stubs.append(outside.module)
                message = (
                    f"`{outside.text}` is outside the allowed modules but never used; remove it"
                )
                yield StaticFinding("SPD105", message, line, column)
                continue
            attribute = self._attributes.get(outside.bound)
            name = f"{outside.bound}.{attribute}" if attribute else outside.bound
            message = (
                f"`{outside.text}` is not allowed (`{name}` is used on line {use.lineno}); "
                f"{_mend(outside.module)}"
            )
            yield StaticFinding("SPD101", message, line, column)


def _listed(module: str) -> bool:
    return module in MODULES or module in OPTIONAL_MODULES


def _mend(module: str) -> str:
    root = module.partition(".")[0]
    if not root:
        return "nothing outside this file is read; put the code into this file"
    if _listed(root):
        return f"use what {root!r} offers to environments"
    return IMPORT_MENDS.get(root, "use the listed standard modules instead")


def _stub(node: ast.stmt, bound: str, module: str) -> ast.stmt:
    call = ast.Call(
        func=ast.Name(f"{HOOK_PREFIX}stub", ast.Load()),
        args=[ast.Constant(module)],
        keywords=[],
    )
    stub = ast.Assign(targets=[ast.Name(bound, ast.Store())], value=call)
    return ast.fix_missing_locations(ast.copy_location(stub, node))
