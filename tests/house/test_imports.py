"""The arrows between the packages run one way, and heavy imports stay away from light ones."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("spade_runtime", "spade_envs", "spade_train")
FORBIDDEN = {
    "spade_runtime": {"spade_envs", "spade_train", "gymnasium", "torch", "transformers", "trl"},
    "spade_envs": {"spade_train", "torch", "transformers", "trl"},
    "spade_train": set(),
}


def _imported(path: Path) -> set[str]:
    roots: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            roots.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            roots.add(node.module.split(".")[0])
    return roots


def _modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_run_one_way(package: str) -> None:
    modules = _modules(package)
    assert modules
    wrong = {
        str(path.relative_to(ROOT)): sorted(found)
        for path in modules
        if (found := _imported(path) & FORBIDDEN[package])
        and "suite" not in path.parts
        and "adapters" not in path.parts
    }
    assert wrong == {}


def _loaded_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


def test_import_of_the_gymnasium_side_brings_no_training_stack() -> None:
    loaded = _loaded_after("import spade_envs")
    assert "gymnasium" in loaded
    assert loaded.isdisjoint({"torch", "transformers", "trl", "accelerate", "datasets"})


def test_help_needs_neither_gymnasium_nor_pydantic_nor_torch() -> None:
    loaded = _loaded_after("from spade_runtime.cli import main\nmain(['--help'])")
    assert "spade_runtime.cli" in loaded
    assert loaded.isdisjoint({"gymnasium", "numpy", "pydantic", "torch", "rich"})
