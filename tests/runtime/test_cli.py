"""The program itself: what surrounds every command, seen from a shell."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spade_runtime.cli import _installed, _load, _overview, _parser

FULL = Path("/dev/full")


def run(words: list[str], *, stdout: int = subprocess.PIPE, before: str = "", **variables: str):
    code = f"import sys\n{before}\nfrom spade_runtime.cli import main\nraise SystemExit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
        timeout=120,
    )


@pytest.mark.parametrize("words", [["train"], ["design"], ["tiny", "build", "--out", "x"]])
def test_a_package_of_an_extra_that_is_absent_is_named_with_its_extra(words, tmp_path):
    hidden = "for name in ('yaml', 'torch', 'transformers'): sys.modules[name] = None"
    done = run(words, before=f"import os; os.chdir({str(tmp_path)!r})\n{hidden}")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"spade {words[0]}" in done.stderr
    assert "pip install 'spade-envs[train]'" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_module_of_our_own_that_is_absent_is_a_bug_and_shows_itself():
    done = run(["explain"], before="sys.modules['spade_runtime.codes'] = None")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="this machine has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["--help"], ["list"], ["explain", "SPD401"]])
def test_a_full_disk_behind_stdout_is_said_once(words, unbuffered):
    with FULL.open("w") as full:
        done = run(words, stdout=full.fileno(), PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 1
    assert done.stderr.startswith("spade: error: ")
    assert "No space left" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_is_no_error(unbuffered):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run(["explain", "--markdown"], stdout=writing, PYTHONUNBUFFERED=unbuffered)
    finally:
        os.close(writing)
    assert done.stderr == ""


@pytest.mark.parametrize(
    "words",
    [["pool", "ls", "nowhere", "--debug"], ["pool", "--debug", "ls", "nowhere"]],
)
def test_every_command_shows_a_traceback_where_it_is_asked_for(words, tmp_path):
    before = f"import os; os.chdir({str(tmp_path)!r})"
    done = run(words, before=before)
    assert done.returncode == 2
    assert "Traceback" in done.stderr and "there is nothing at nowhere" in done.stderr
    quiet = run([word for word in words if word != "--debug"], before=before)
    assert "Traceback" not in quiet.stderr


def actions_of(parser):
    """A parser and those of its actions, by the words that lead to each."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for own in action.choices.values():
                yield from actions_of(own)


@pytest.mark.parametrize("name", sorted(_installed()))
def test_every_help_says_what_it_is_of_in_lines_that_fit(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    for parser in actions_of(_parser(_load(name, _installed()))):
        text = parser.format_help()
        assert parser.description, parser.prog
        assert "--debug" in text
        assert max(map(len, text.splitlines())) <= 100, parser.prog


def test_the_overview_names_every_action_of_a_pool():
    text = _overview(_installed())
    (line,) = [row for row in text.splitlines() if row.startswith("  pool")]
    for action in actions_of(_parser(_load("pool", _installed()))):
        assert action.prog.split()[-1] in line
