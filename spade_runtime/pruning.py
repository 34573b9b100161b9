"""Code that can't run inside the runtime: main guards, type-checking blocks, and their helpers.

Real files often end in `if __name__ == "__main__": main()`, with `input` and `sys.exit` in `main`.
An environment is never run that way, so such code is taken out before the policy looks, and can
not make a sound file fail.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = ast.FunctionDef


def _is_main_guard(test: ast.expr) -> bool:
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1):
        return False
    if not isinstance(test.ops[0], ast.Eq):
        return False
    sides = (test.left, test.comparators[0])
    names = [s for s in sides if isinstance(s, ast.Name) and s.id == "__name__"]
    texts = [s for s in sides if isinstance(s, ast.Constant) and s.value == "__main__"]
    return len(names) == 1 and len(texts) == 1


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute)
        and test.attr == "TYPE_CHECKING"
        and isinstance(test.value, ast.Name)
        and test.value.id == "typing"
    )


def _names(nodes: list[ast.stmt]) -> Iterator[str]:
    for statement in nodes:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                yield node.id


def prune(tree: ast.Module) -> dict[str, tuple[Function, list[ast.stmt]]]:
    """Take the bodies of main guards and type-checking blocks out of a module.

    Returns:
        The module-level functions that such a guard reaches, with their bodies, which are taken
        out too. One that live code also names has to get its body back.
    """
    guarded: list[ast.stmt] = []
    for statement in tree.body:
        if not isinstance(statement, ast.If):
            continue
        if _is_main_guard(statement.test):
            guarded += statement.body
        elif not _is_type_checking(statement.test):
            continue
        statement.body = [ast.copy_location(ast.Pass(), statement)]
    if not guarded:
        return {}
    functions: dict[str, list[Function]] = {}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            functions.setdefault(statement.name, []).append(statement)
    deferred: dict[str, tuple[Function, list[ast.stmt]]] = {}
    reached = set(_names(guarded))
    while reached:
        name = reached.pop()
        found = functions.get(name, [])
        # A decorator or a second definition of the name may use the function when the file loads.
        if name in deferred or len(found) != 1 or found[0].decorator_list:
            continue
        function = found[0]
        deferred[name] = (function, function.body)
        reached.update(_names(function.body))
        function.body = [ast.copy_location(ast.Pass(), function)]
    return deferred
