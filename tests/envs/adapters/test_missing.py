"""What is said where a library is not there, and that nothing is imported before its time."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import spade_envs.adapters
from spade_runtime.errors import UsageError

FOLDER = Path(spade_envs.adapters.__file__).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
WANTED = {
    "bfcl": ("bfcl_eval", "bfcl-eval", lambda module: module.backends()),
    "gem": ("gem", "gem-llm", None),
    "gem_sources": ("gem", "gem-llm", lambda module: module.source_of("game:Sokoban-v0")),
    "openenv": ("openenv", "openenv-core", None),
    "reasoning_gym": ("reasoning_gym", "reasoning-gym", lambda module: module.datasets()),
    "verifiers": ("verifiers", "verifiers", None),
}


@pytest.mark.parametrize("name", WANTED)
def test_a_missing_package_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, installed_by, use = WANTED[name]
    for loaded in list(sys.modules):
        if loaded.split(".")[0] == package or loaded == f"spade_envs.adapters.{name}":
            monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    with pytest.raises(UsageError, match=f"needs the package {installed_by} .*pip install"):
        module: Any = importlib.import_module(f"spade_envs.adapters.{name}")
        assert use is not None
        use(module)


def test_an_adapter_that_needs_no_base_class_imports_nothing() -> None:
    light = ["bfcl", "gem_sources", "reasoning_gym", "trl"]
    lines = [f"import spade_envs.adapters.{name}" for name in light]
    code = "\n".join([*lines, "import sys", "print(' '.join(sys.modules))"])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    foreign = {"bfcl_eval", "gem", "reasoning_gym", "trl", "torch", "transformers", "datasets"}
    assert foreign.isdisjoint(done.stdout.split())


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_hold(name: str) -> None:
    try:
        module = importlib.import_module(f"spade_envs.adapters.{name}")
        failed, _ = doctest.testmod(module, raise_on_error=True)
    except UsageError as missing:
        pytest.skip(str(missing))
    except doctest.UnexpectedException as raised:
        if not isinstance(raised.exc_info[1], UsageError):
            raise
        pytest.skip(str(raised.exc_info[1]))
    assert failed == 0
