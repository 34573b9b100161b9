"""Words of a command line that can't be: each costs one message, and no traceback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., "subprocess.CompletedProcess[str]"]
RUN = ("run", "StampDrawer", "--episodes", "1", "--to", "e.jsonl", "--model")
CLOSED_INPUT = ("sh", "-c", 'exec "$@" <&-', "sh")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Run `spade` as a process of its own in an empty directory."""

    def run(*words: str | bytes, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*before, sys.executable, "-m", "spade_runtime.cli", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*RUN, "text:x", "--hint", b"\xff"), "--hint: expected text in UTF-8, not '\\udcff'"),
        ((*RUN, "text:x", "--system", b"a\xff"), "--system: expected text in UTF-8"),
        ((*RUN, "text:x", "--model-name", b"a\xff"), "--model-name: expected text in UTF-8"),
        ((*RUN, b"text:\xff"), "--model: expected text in UTF-8"),
        ((*RUN, "random", "--timeout", "nan"), "seconds above 0 and up to 1,000,000, not 'nan'"),
        ((*RUN, "random", "--timeout", "-1"), "seconds above 0 and up to 1,000,000, not '-1'"),
        ((*RUN, "random", "--timeout", "0"), "seconds above 0 and up to 1,000,000, not '0'"),
        ((*RUN, "random", "--timeout", "1e12"), "seconds above 0 and up to 1,000,000, not '1e12'"),
        ((*RUN, "random", "--timeout", "soon"), "seconds above 0 and up to 1,000,000, not 'soon'"),
        ((*RUN, "random", "--temperature", "nan"), "--temperature is a number of at least 0"),
        ((*RUN, "random", "--temperature", "inf"), "--temperature is a number of at least 0"),
        ((*RUN, "random", "--top-p", "nan"), "--top-p above 0 and at most 1"),
        (("play", "StampDrawer", "--hint", b"\xff"), "--hint: expected text in UTF-8"),
        (("play", "StampDrawer", "--policy", b"text:\xff"), "--policy: expected text in UTF-8"),
        (("new", "foo", "--title", b"a\xff"), "a title is one line of printable text"),
        (("new", "foo", "--title", "a\x1b[2Jb"), "a title is one line of printable text"),
    ],
)
def test_what_can_not_be_is_refused_before_anything_is_done(
    program: Program, tmp_path: Path, words: tuple[str | bytes, ...], said: str
) -> None:
    done = program(*words)
    assert done.returncode == 2
    assert said in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_where_nobody_can_type_only_a_policy_plays(program: Program) -> None:
    done = program("play", "StampDrawer", before=CLOSED_INPUT)
    assert done.returncode == 2
    assert done.stderr.startswith("spade: error: nobody can type here: standard input is closed")
    done = program("play", "StampDrawer", "--policy", "text:12", before=CLOSED_INPUT)
    assert done.returncode == 0 and "Traceback" not in done.stderr
