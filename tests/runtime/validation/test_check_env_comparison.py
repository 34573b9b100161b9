"""Gymnasium's own `check_env` on the files with one flaw each: what it lets pass is published."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from spade_runtime.validation.validator import Validator


@pytest.fixture
def comparison(repository: Path, validator: Validator) -> ModuleType:
    """The benchmark that makes the page, loaded from its file."""
    file = repository / "benchmarks" / "check_env.py"
    spec = importlib.util.spec_from_file_location("check_env_comparison", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_is_up_to_date(repository: Path, comparison: ModuleType) -> None:
    written = (repository / "docs" / "check_env.md").read_text(encoding="utf-8")
    assert written == comparison.page(comparison.compare()), (
        "run: python benchmarks/check_env.py > docs/check_env.md"
    )
