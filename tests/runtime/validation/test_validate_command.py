"""`spade validate` and `spade explain` as a person or a CI job calls them."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spade_runtime.commands import explain, validate
from spade_runtime.errors import IsolationUnavailable
from spade_runtime.records import Records
from spade_runtime.spec import ValidationReport
from spade_runtime.validation.validator import Validator

Write = Callable[[str, str], Path]
Run = Callable[..., int]


@pytest.fixture(autouse=True)
def _isolated(validator: Validator) -> None:
    """Skips the tests where the machine can't isolate."""


def run(*arguments: object) -> int:
    import argparse

    parser = argparse.ArgumentParser()
    validate.command.configure(parser)
    return validate.command.run(parser.parse_args([str(part) for part in arguments]))


def test_exit_codes_follow_the_verdicts(
    write: Write, sum_game: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good = write("good.py", sum_game)
    assert run(good) == 0
    bad = write("bad.py", "import socket\nprint(socket)\n")
    assert run(good, bad) == 1
    out = capsys.readouterr().out
    assert f"{bad}: rejected" in out
    assert "SPD101 error" in out
    assert "2 files: 1 accepted, 1 rejected" in out


def test_json_is_all_that_stdout_holds(
    tmp_path: Path, write: Write, sum_game: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write("envs/b.py", "x = (\n")
    write("envs/a.py", sum_game)
    assert run(tmp_path / "envs", "--format", "json", "--profile", "strict") == 1
    captured = capsys.readouterr()
    reports = json.loads(captured.out)["reports"]
    assert [Path(row["path"]).name for row in reports] == ["a.py", "b.py"]
    assert [row["verdict"] for row in reports] == ["accepted", "rejected"]
    for row in reports:
        ValidationReport.model_validate(row)
    assert captured.err == ""


def test_jobs_change_nothing(
    tmp_path: Path, write: Write, sum_game: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(5):
        text = sum_game.replace("SumEnv", f"Sum{number}Env").replace("999", f"{900 + number}")
        write(f"envs/e{number}.py", text)
    write("envs/z.py", "class ZEnv: pass\n")
    texts = []
    for jobs in (1, 2):
        assert run(tmp_path / "envs", "--format", "json", "--jobs", jobs) == 1
        reports = json.loads(capsys.readouterr().out)["reports"]
        for row in reports:
            for gate in row["gates"]:
                del gate["seconds"]
        texts.append(json.dumps(reports))
    assert texts[0] == texts[1]
    # Alike but for names and numbers: each but the first is a near-duplicate of one before it.
    assert texts[0].count('"SPD704"') == 4


def test_github_annotations(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    bad = write("bad.py", "x = (\n")
    assert run(bad, "--format", "github") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"::error file={bad},line=")
    assert "title=SPD003::" in lines[0]


def test_a_hint_goes_with_one_file(
    write: Write, sum_game: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from spade_runtime.errors import UsageError

    first, second = write("a.py", sum_game), write("b.py", sum_game)
    hint = write("hint.txt", "Add the two numbers.")
    assert run(first, "--hint", hint) == 0
    with pytest.raises(UsageError, match="--hint goes with one file"):
        run(first, second, "--hint", hint)
    capsys.readouterr()


def test_what_is_accepted_is_noted_in_this_machines_records(
    write: Write, sum_game: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, bad = write("envs/a.py", sum_game), write("envs/b.py", "x = (\n")
    digest = hashlib.sha256(sum_game.encode()).hexdigest()
    monkeypatch.setenv("XDG_STATE_HOME", str(file.parent.parent / "state"))
    assert run(file, "--policy", "off") == 0
    assert not Records().holds(digest)
    assert run(file.parent) == 1
    assert Records().accepted([digest, hashlib.sha256(bad.read_bytes()).hexdigest()]) == {digest}
    capsys.readouterr()
    monkeypatch.setenv("XDG_STATE_HOME", str(file))
    assert run(file, "--format", "json") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["reports"] and "set XDG_STATE_HOME" in said.err


def test_an_id_that_two_files_claim_is_noted_and_decides_nothing(
    write: Write, sum_game: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write("envs/a.py", sum_game)
    write("envs/copy.py", sum_game)
    assert run(first.parent) == 0
    assert "note:" not in capsys.readouterr().out
    second = write("envs/b.py", f"# another\n{sum_game}")
    assert run(first.parent) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"note: 2 different files claim the id spade/Sum-v0: {first}, {second};")
    assert run(first.parent, "--format", "json") == 0
    said = capsys.readouterr()
    assert len(json.loads(said.out)["reports"]) == 3 and said.err.strip() == last


def test_a_place_is_told_once(
    write: Write, sum_game: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = sum_game.replace(
        "    def step(self, action):\n", "    def step(self, action):\n        1 / 0\n"
    )
    assert run(write("a.py", text)) == 1
    (line,) = [row for row in capsys.readouterr().out.splitlines() if "SPD401" in row]
    assert line.count("(line ") == 1 and line.count("seed ") == 1


def test_a_pool_is_compared(
    write: Write, tmp_path: Path, sum_game: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write("pool/aa/env.py", sum_game)
    other = write("new.py", sum_game.replace("SumEnv", "OtherEnv"))
    assert run(other, "--pool", tmp_path / "pool") == 0
    assert "SPD704" in capsys.readouterr().out


def test_unreadable_files_are_told_and_the_rest_goes_on(
    tmp_path: Path, write: Write, sum_game: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write("envs/a.py", sum_game)
    (tmp_path / "envs" / "loop.py").symlink_to(tmp_path / "envs" / "loop.py")
    assert run(tmp_path / "envs") == 2
    captured = capsys.readouterr()
    assert "loop.py" in captured.err
    assert "a.py: accepted" in captured.out


def test_usage_errors(write: Write, sum_game: str) -> None:
    from spade_runtime.errors import UsageError

    file = write("a.py", sum_game)
    with pytest.raises(UsageError, match="--jobs is at least 1"):
        run(file, "--jobs", 0)
    with pytest.raises(UsageError, match="go together"):
        run(file, "--judge", "http://localhost:1")
    with pytest.raises(UsageError, match="no file or folder"):
        run(file.with_name("nope.py"))


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_keeps_what_was_found(
    write: Write, tmp_path: Path, sum_game: str, jobs: int, kind: signal.Signals
) -> None:
    for number in range(200):
        write(f"envs/{number:03d}.py", sum_game)
    words = ["validate", str(tmp_path / "envs"), "--format", "json", "--jobs", str(jobs)]
    # A shell that starts the tests in the background has them ignore Ctrl-C, and this one too.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from spade_runtime.cli import main; raise SystemExit(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        first = running.stdout.readline() + running.stdout.read(1)
        running.send_signal(kind)
        out, err = first + running.stdout.read(), running.stderr.read()
    assert running.returncode == 130
    done = len(json.loads(out)["reports"])
    assert 0 < done < 200
    assert err == f"spade: stopped after {done} of 200 files\n"


def test_a_machine_without_isolation_is_exit_code_3() -> None:
    assert IsolationUnavailable("missing").exit_code == 3


def test_explain_lists_and_explains(capsys: pytest.CaptureFixture[str]) -> None:
    import argparse

    parser = argparse.ArgumentParser()
    explain.command.configure(parser)
    assert explain.command.run(parser.parse_args([])) == 0
    assert "SPD805" in capsys.readouterr().out
    assert explain.command.run(parser.parse_args(["spd401", "602"])) == 0
    out = capsys.readouterr().out
    assert "SPD401: step or close raises" in out
    assert "SPD602: no reference solution" in out
