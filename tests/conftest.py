"""What every test may use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).parents[1]


@pytest.fixture(scope="session")
def golden() -> dict[str, Any]:
    """Golden values of the pure functions: inputs and right outputs by function."""
    text = (Path(__file__).parent / "golden" / "golden.json").read_text(encoding="utf-8")
    values: dict[str, Any] = json.loads(text)
    return values
