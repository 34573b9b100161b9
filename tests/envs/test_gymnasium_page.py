"""Runs the code of `docs/gymnasium.md`: what the page says is what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "gymnasium.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_of_the_page_runs(number, tmp_path):
    script = tmp_path / "block.py"
    script.write_text(BLOCKS[number], "utf-8")
    found = subprocess.run(
        [sys.executable, "-W", "error", str(script)], capture_output=True, text=True, timeout=120
    )
    assert found.returncode == 0, found.stderr


def test_the_page_has_its_blocks():
    assert len(BLOCKS) == 6
