"""Sources to try the validator on."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

SUM_GAME = '''
class SumEnv(TextEnv):
    """Add two numbers."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.a, self.b = rng.randint(100, 999), rng.randint(100, 999)
        return f"{self.a} + {self.b}?", {}

    def step(self, action):
        good = action.strip() == str(self.a + self.b)
        return ("Right." if good else "Wrong."), 1.0 if good else 0.0, True, False, {}

    def solution(self):
        return [str(self.a + self.b)]
'''


@pytest.fixture(scope="session")
def sum_game() -> str:
    """A sound game of one turn."""
    return SUM_GAME


@pytest.fixture(scope="session")
def shelf_tools(repository: Path) -> str:
    """A sound tool-use environment, of those that the benchmark of the validator takes."""
    sources = runpy.run_path(str(repository / "benchmarks" / "_short_sources.py"))
    return str(sources["SHELF"].format(name="Shelf", low=100, high=9))


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a file into the test's folder."""

    def put(name: str, text: str) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    return put
