"""The examples of the guides do what the guides say, in an empty folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SPADE = (sys.executable, "-c", "from spade_runtime.cli import main; raise SystemExit(main())")


def only_block(page: str) -> str:
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.M | re.S)
    assert len(blocks) == 1
    return str(blocks[0])


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("pools.md", r"spade/KnaveCouncil-v0 0\.5 \d+\n"),
        ("validation.md", r"rejected .*SPD403.*\n"),
    ],
)
def test_the_code_of_a_page_runs(page: str, said: str, tmp_path: Path) -> None:
    script = tmp_path / "block.py"
    script.write_text(only_block(page), "utf-8")
    found = subprocess.run(
        [sys.executable, "-W", "error", script.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert re.fullmatch(said, found.stdout)


def test_the_calls_of_the_page_about_playing_are_understood() -> None:
    page = (DOCS / "playing.md").read_text("utf-8")
    plain, named = "line_km Gand Delft", 'line_km(start="Gand", end="Delft")'
    assert plain in page and named in page
    found = subprocess.run(
        [*SPADE, "play", "MapRoom"],
        input=f"{plain}\n{named}\n:quit\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    answers = re.findall(r"turn \d of 12 ─+╮\n│ (\d+) ", found.stdout)
    assert len(answers) == 2 and answers[0] == answers[1]
