import json
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def golden():
    """The golden values of the pure functions, by function."""
    path = Path(__file__).parents[1] / "golden" / "golden.json"
    return json.loads(path.read_text(encoding="utf-8"))
