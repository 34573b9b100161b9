"""How much of other people's environment code the static policy accepts, and what stops the rest.

Give folders of installed packages; nothing of them is imported or run::

    python benchmarks/policy_acceptance.py SITE/gem/envs SITE/textarena/envs

A file counts where it defines a class at its top level. Imports of the package that a file belongs
to are taken as given, since here a file stands alone; every other import outside the list counts.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from spade_runtime.curated import MODULES, OPTIONAL_MODULES
from spade_runtime.policy import check


def own_package(folder: Path) -> str:
    """The name of the top package that a folder lies in."""
    top = folder
    while (top.parent / "__init__.py").exists():
        top = top.parent
    return top.name


def measure(folder: Path) -> dict[str, Any]:
    """Measure one folder."""
    own = own_package(folder)
    roots = {name.partition(".")[0] for name in (*MODULES, *OPTIONAL_MODULES)}
    files = accepted = listed = listed_accepted = 0
    seconds = 0.0
    outside: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    misses: list[str] = []
    unreadable: list[str] = []
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                tree = ast.parse(source)
            except SyntaxError:
                # Syntax of a newer Python than this one, or a template.
                unreadable.append(str(path.relative_to(folder)))
                continue
        if not any(isinstance(node, ast.ClassDef) for node in tree.body):
            continue
        started = time.process_time()
        errors = check(source).errors
        seconds += time.process_time() - started
        files += 1
        foreign: set[str] = set()
        others = []
        for finding in errors:
            module = _module(finding.message) if finding.code == "SPD101" else None
            if module is not None and (module.startswith(".") or module.split(".")[0] == own):
                continue
            if module is not None and module.partition(".")[0] not in roots:
                foreign.add(module.partition(".")[0])
            else:
                others.append(finding)
        outside.update(foreign)
        accepted += not foreign and not others
        if foreign:
            continue
        listed += 1
        listed_accepted += not others
        causes.update({f"{f.code} {f.message.partition(';')[0]}" for f in others})
        misses += [
            f"{path.relative_to(folder)}:{f.line} {f.code} {f.message.partition(';')[0]}"
            for f in others
        ]
    return {
        "package": own,
        "folder": folder.name,
        "files": files,
        "accepted": accepted,
        "imports_listed": listed,
        "imports_listed_accepted": listed_accepted,
        "cpu_milliseconds_per_file": round(1000 * seconds / max(1, files), 2),
        "imports_outside": outside.most_common(),
        "causes": causes.most_common(),
        "misses": misses,
        "unreadable": unreadable,
    }


def _module(message: str) -> str:
    """The module of an import finding, whose message begins with the statement in backquotes."""
    return message.split("`")[1].split()[1]


def main() -> int:
    """Print a table, or everything as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, help="folders of source files")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    arguments = parser.parse_args()
    for folder in arguments.folders:
        if not folder.is_dir():
            print(f"policy_acceptance: {folder} is no folder", file=sys.stderr)
            return 2
    rows = [measure(folder.resolve()) for folder in arguments.folders]
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    print(
        "| package | files | accepted | imports on the list | of these accepted | CPU ms a file |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        share = row["imports_listed_accepted"] / max(1, row["imports_listed"])
        print(
            f"| {row['package']} | {row['files']} | {row['accepted']} | {row['imports_listed']} "
            f"| {row['imports_listed_accepted']} ({share:.1%}) "
            f"| {row['cpu_milliseconds_per_file']} |"
        )
    for row in rows:
        print(f"\n{row['package']}: imports outside the list: {row['imports_outside']}")
        for miss in row["misses"]:
            print(f"  {miss}")
        for path in row["unreadable"]:
            print(f"  {path}: no Python {sys.version_info.major}.{sys.version_info.minor}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
