"""`--isolation`: every command with a sandbox has it, and a refusal names it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spade_envs import suite

WITHOUT_SECCOMP = """
import sys
sys.modules["pyseccomp"] = None
from spade_runtime.cli import main
raise SystemExit(main())
"""
EPISODES = ["run", "StampDrawer", "--model", "random", "--episodes", "2", "--to", "e.jsonl"]
COMMANDS = [
    ["validate", "sources"],
    ["show", "StampDrawer", "--seed", "3"],
    ["play", "StampDrawer", "--policy", "text:0"],
    EPISODES,
    ["replay", "e.jsonl"],
    ["pool", "import", "sources", "pool"],
]


def spade(folder: Path, words: list[str], level: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_SECCOMP, *words, "--isolation", level],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_every_command_takes_what_there_is_where_that_is_asked_for(
    tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "sources").mkdir()
    shutil.copy(suite.paths()["StampDrawerEnv"], tmp_path / "sources")
    if words[0] == "replay":
        assert spade(tmp_path, EPISODES, "best_effort").returncode == 0
    refused = spade(tmp_path, words, "strict")
    assert refused.returncode == 3
    assert "or choose `--isolation best_effort`" in refused.stderr
    assert not (tmp_path / "pool").exists()
    assert spade(tmp_path, words, "best_effort").returncode == 0
