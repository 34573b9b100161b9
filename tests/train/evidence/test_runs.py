"""The whole way on a small real world: two arms on two seeds, killed, resumed, read, told."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from spade_train.evidence.__main__ import main

SPADE = "import sys; from spade_runtime.cli import main; sys.exit(main())"


@pytest.fixture(scope="module")
def options(small_words, tmp_path_factory):
    """The folders of the evidence and the words that describe it."""
    root = tmp_path_factory.mktemp("evidence")
    words = ["--runs", root / "runs", "--out", root / "docs", "--seeds", "1, 2", "--steps", "3"]
    words += ["--arms", "full unpaired_seeds", "--jobs", "2", "--designs", "4"]
    return root, [*words, "--embedding", "tfidf", *small_words]


@pytest.fixture(scope="module")
def gathered(isolation, options, evidence_command, gather_evidence):
    """Evidence whose runner was killed in the midst of its runs, and then asked again."""
    root, words = options
    command, environment = evidence_command(*words)
    with (root / "killed.txt").open("w") as said:
        killed = subprocess.Popen(command, stderr=said, env=environment)
    metrics = root / "runs" / "full" / "seed-1" / "metrics.jsonl"
    while killed.poll() is None and not (metrics.is_file() and metrics.read_bytes()):
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL, (root / "killed.txt").read_text()
    done = gather_evidence(*words)
    assert done.returncode == 0, done.stderr
    return root, done


@pytest.mark.slow
def test_every_run_is_brought_to_its_end(gathered):
    root, done = gathered
    assert "full seed 1: goes on" in done.stderr
    for arm in ("full", "unpaired_seeds"):
        for seed in (1, 2):
            folder = root / "runs" / arm / f"seed-{seed}"
            rows = read(folder / "metrics.jsonl")
            assert [row["step"] for row in rows] == [0, 1, 2, 3]
            measured = sorted(p.name for p in (folder / "episodes").glob("heldout-*"))
            assert measured == [f"heldout-{step:06d}.jsonl" for step in range(4)]
            stamp = json.loads(folder.with_suffix(".json").read_text())
            assert stamp["attempts"][-1]["exit_code"] == 0
            assert stamp["attempts"][-1]["cpu_seconds"] > 0


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_the_killed_run_equals_an_unbroken_one(gathered, small_words, tmp_path):
    root, _ = gathered
    words = [*small_words, "seed=1", "steps=3", "heldout_every=1", f"run_dir={tmp_path / 'run'}"]
    subprocess.run(
        [sys.executable, "-c", SPADE, "train", "--preset", "tiny", *words],
        check=True,
        capture_output=True,
        timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    ours = root / "runs" / "full" / "seed-1"
    for log in ("metrics.jsonl", "designs.jsonl"):
        assert timeless(read(ours / log)) == timeless(read(tmp_path / "run" / log))
    for path in sorted((tmp_path / "run" / "episodes").iterdir()):
        assert read(ours / "episodes" / path.name) == read(path)


def timeless(rows):
    return [{k: v for k, v in row.items() if not k.startswith("seconds")} for row in rows]


@pytest.mark.slow
def test_what_is_kept_of_a_measurement_is_what_was_measured(gathered):
    folder = gathered[0] / "runs" / "full" / "seed-1"
    for row in read(folder / "metrics.jsonl"):
        plays = read(folder / "episodes" / f"heldout-{row['step']:06d}.jsonl")
        # Three environments, of which two have a hint, two plays an arm.
        assert [sum(p["arm"] == arm for p in plays) for arm in ("unhinted", "hinted")] == [6, 4]
        solved = [bool(p["solved"]) for p in plays if p["arm"] == "unhinted"]
        assert row["heldout/win_rate"] == pytest.approx(sum(solved) / 6)
        assert row["seconds_heldout"] > 0


@pytest.mark.slow
def test_the_pages_are_written_and_name_no_place_of_the_machine(gathered):
    root, done = gathered
    docs = root / "docs"
    written = sorted(p.name for p in docs.iterdir())
    assert written == [
        "README.md",
        "arms.svg",
        "heldout.svg",
        "ledgers.json",
        "levers.svg",
        "pools.svg",
    ]
    assert [line.rpartition("/")[2] for line in sorted(done.stdout.split())] == written
    for path in docs.iterdir():
        assert str(root.parent) not in path.read_text(encoding="utf-8")
    text = (docs / "README.md").read_text(encoding="utf-8")
    assert "from 4 finished runs" in text
    assert re.search(r"\| reference solutions \| 1\.00 \|", text)
    assert "| `unpaired_seeds` | TF-IDF |" in text
    runs = json.loads((docs / "ledgers.json").read_text(encoding="utf-8"))
    assert [(run["arm"], run["seed"]) for run in runs] == [
        ("full", 1),
        ("full", 2),
        ("unpaired_seeds", 1),
        ("unpaired_seeds", 2),
    ]
    assert all(run["ledger"]["accounts"]["agent"]["executions"] > 0 for run in runs)
    assert len({run["config_sha256"] for run in runs}) == 4
    assert len({run["weights_sha256"] for run in runs}) == 1


@pytest.mark.slow
def test_asked_again_nothing_is_repeated_and_the_pages_are_the_same(
    gathered, options, gather_evidence
):
    root, words = options
    before = {path: path.read_bytes() for path in (root / "docs").iterdir()}
    logs = {p: p.stat().st_mtime_ns for p in (root / "runs").glob("*/*/metrics.jsonl")}
    again = gather_evidence(*words)
    assert again.returncode == 0, again.stderr
    assert "4 of 4 runs are finished already" in again.stderr
    assert {path: path.read_bytes() for path in (root / "docs").iterdir()} == before
    assert {p: p.stat().st_mtime_ns for p in (root / "runs").glob("*/*/metrics.jsonl")} == logs


@pytest.mark.slow
def test_runs_of_other_settings_are_refused_and_stay(gathered, options, capsys):
    root, words = options
    assert main([*map(str, words), "learning_rate=0.5"]) == 2
    said = capsys.readouterr().err
    assert "4 of the runs in" in said and "other settings" in said
    assert (root / "runs" / "full" / "seed-1" / "metrics.jsonl").is_file()


def test_a_polite_kill_stops_the_runs_and_says_how_to_go_on(
    isolation, small_words, tmp_path, evidence_command
):
    words = ["--runs", tmp_path, "--arms", "full", "--seeds", "7", "--steps", "50", *small_words]
    command, environment = evidence_command(*words)
    runner = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert runner.stderr is not None
    while "begins" not in (line := runner.stderr.readline()):
        assert line, "the runner ended before its run began"
    runner.send_signal(signal.SIGTERM)
    _, said = runner.communicate(timeout=600)
    assert runner.returncode == 130, said
    assert said.endswith("evidence: stopped; the same command goes on\n")
    stamp = json.loads((tmp_path / "full" / "seed-7.json").read_text())
    # The run had its turn to leave, and what it cost was written down.
    assert [attempt["exit_code"] in (130, -2) for attempt in stamp["attempts"]] == [True]


def test_pages_are_not_written_of_nothing(options, tmp_path, capsys):
    _, words = options
    assert main([*map(str, words), "--runs", str(tmp_path), "--pages-only"]) == 2
    assert "no run in" in capsys.readouterr().err


def test_pages_alone_make_no_folder(tmp_path, capsys):
    assert main(["--runs", str(tmp_path / "typo"), "--pages-only"]) == 2
    assert "there is no folder" in capsys.readouterr().err
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seeds", "one"], "a seed must be a whole number"),
        (["--jobs", "0"], "jobs must be a whole number of 1 or more"),
        (["--seeds", "\N{SUPERSCRIPT TWO}"], "a seed must be a whole number"),
        (["--seeds", "9" * 5000], "a seed must be a whole number"),
        (["--arms", "frozen"], "unknown arm 'frozen'"),
        (["--arms", ",,"], "--arms ',,' names no arm"),
        (["--steps", "5", "steps=6"], "leave out --steps, or it"),
        (["seed=3"], "use --seeds"),
        (["ablation=no_memory", "--arms", "full"], "it is what the arm no_memory differs in"),
        (["stesp=3"], "did you mean 'steps'?"),
    ],
)
def test_a_usage_error_is_one_line(words, message, tmp_path, capsys):
    assert main(["--runs", str(tmp_path), *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
