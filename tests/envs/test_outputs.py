"""Where commands write: found before the work, said where a folder is made, and left clean."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spade_envs import suite

Spade = Callable[..., tuple[int, str, str]]
RUN = ["run", "StampDrawer", "--model", "random", "--episodes", "2"]


@pytest.fixture
def unwritable(tmp_path: Path) -> Path:
    """A place in which nobody, not even root, can make a file."""
    (tmp_path / "file").write_text("in the way")
    return tmp_path / "file" / "e.jsonl"


def test_run_finds_an_unwritable_place_before_it_asks_the_model_to_play(
    spade: Spade, unwritable: Path, chat_server: Any
) -> None:
    words = ["run", "StampDrawer", "--model", chat_server.url, "--to", str(unwritable)]
    code, out, err = spade(*words)
    assert code == 2 and out == "" and "can't write" in err
    assert chat_server.asked == []


def test_play_finds_an_unwritable_place_before_the_person_plays(
    spade: Spade, unwritable: Path
) -> None:
    code, out, err = spade("play", "StampDrawer", "--policy", "text:1", "--record", unwritable)
    assert code == 2 and out == "" and "can't write" in err


@pytest.mark.skipif(os.geteuid() == 0, reason="the super user may write everywhere")
def test_a_folder_without_permission_is_found_before_the_work(spade: Spade, tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir(mode=0o500)
    code, out, err = spade(*RUN, "--to", "shut/e.jsonl")
    assert code == 2 and out == "" and "Permission denied" in err


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (["new", "tide_table", "--to", "far/away"], "far/away"),
        ([*RUN, "--to", "far/away/e.jsonl"], "far/away"),
        (["play", "StampDrawer", "--policy", "text:1", "--record", "far/e.jsonl"], "far"),
        (["pool", "import", "sources", "far/pool", "--unchecked"], "far"),
    ],
)
def test_a_folder_that_has_to_be_made_is_said(
    spade: Spade, tmp_path: Path, words: list[str], made: str
) -> None:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "a.py").write_bytes(suite.paths()["StampDrawerEnv"].read_bytes())
    code, _, err = spade(*words)
    assert code == 0 and err == f"spade: made the folder {made}\n"
    assert (tmp_path / made).is_dir()


def test_exports_say_so_too_and_a_failed_one_leaves_no_folder(spade: Spade, tmp_path: Path) -> None:
    assert spade(*RUN, "--to", "e.jsonl")[0] == 0
    assert spade("replay", "none.jsonl", "--export", "far/e.parquet")[0] == 2
    assert not (tmp_path / "far").exists()
    assert spade("replay", "e.jsonl", "--export", "far/e.jsonl") == (
        0,
        "2 episodes in far/e.jsonl\n",
        "spade: made the folder far\n",
    )


def test_a_run_that_gets_no_answer_leaves_nothing(
    spade: Spade, tmp_path: Path, chat_server: Any
) -> None:
    chat_server.answer = lambda _: (400, "no")
    code, _, err = spade("run", "StampDrawer", "--model", chat_server.url, "--to", "far/e.jsonl")
    assert code == 2 and "HTTP 400: no" in err
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_loses_its_server_keeps_what_was_finished_and_says_how_to_go_on(
    spade: Spade, tmp_path: Path, chat_server: Any, chat_body: Any
) -> None:
    chat_server.script = [(200, {}, chat_body("1"))] * 2 + [(400, {}, "out of credit")]
    words = ["run", "StampDrawer", "--model", chat_server.url, "--to", "e.jsonl"]
    words += ["--episodes", "4", "--instances", "2"]
    code, _, err = spade(*words)
    assert code == 2 and "HTTP 400: out of credit" in err
    assert "finished episodes are kept. Go on with: spade run ... --to e.jsonl --resume" in err
    assert len((tmp_path / "e.jsonl").read_text().splitlines()) == 2
    assert spade(*words, "--resume")[0] == 0
    assert len((tmp_path / "e.jsonl").read_text().splitlines()) == 4


def test_a_stop_while_a_server_is_silent_is_quick_and_leaves_nothing(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        program = "from spade_runtime.cli import main; raise SystemExit(main())"
        words = ["run", "StampDrawer", "--model", url, "--model-name", "m", "--to", "far/e.jsonl"]
        command = [sys.executable, "-c", program, *words, "--timeout", "3600"]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as running:
            connection, _ = silent.accept()
            running.send_signal(signal.SIGTERM)
            _, err = running.communicate()
        connection.close()
    assert running.returncode == 130
    assert err == "spade: made the folder far\nstopped\n"
    assert list(tmp_path.iterdir()) == []


def test_to_and_resume_are_held_against_what_is_there(spade: Spade, tmp_path: Path) -> None:
    code, _, err = spade(*RUN, "--resume")
    assert code == 2 and "name it with --to FILE" in err
    code, _, err = spade(*RUN, "--to", ".")
    assert code == 2 and "is a folder; name a file in it" in err
    code, _, err = spade(*RUN, "--resume", "--to", "e.jsonl")
    assert code == 0 and err == "spade: there is no e.jsonl yet; it is begun\n"
    assert len((tmp_path / "e.jsonl").read_text().splitlines()) == 2
