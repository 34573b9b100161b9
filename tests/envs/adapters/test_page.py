"""Runs the code of `docs/adapters.md`, each block where its package is installed."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "adapters.md"
BLOCK = re.compile(r"^<!-- needs: (\w+) -->\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(PAGE.read_text("utf-8"))


@pytest.mark.parametrize("package", [package for package, _ in BLOCKS])
def test_a_block_of_the_page_runs(package: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    script = tmp_path / "block.py"
    script.write_text(dict(BLOCKS)[package], "utf-8")
    found = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert found.returncode == 0, found.stderr


def test_the_page_has_its_blocks() -> None:
    assert [package for package, _ in BLOCKS] == [
        "trl", "verifiers", "openenv", "gem", "reasoning_gym", "bfcl_eval"
    ]  # fmt: skip
    assert PAGE.read_text("utf-8").count("```python") == len(BLOCKS)
