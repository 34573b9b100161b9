import json
import shutil

import pytest

from spade_runtime.errors import UsageError
from spade_train.report import read_run, write_report
from spade_train.report.cards import build_cards
from spade_train.report.records import episode_of


def test_a_run_is_read(run_folder):
    records = read_run(run_folder)
    assert [row["step"] for row in records.metrics] == list(range(24))
    assert records.finished
    assert records.config["preset"] == "tiny"
    assert not records.problems
    steps = [step for step, rows in records.episodes() if rows]
    assert steps == list(range(24))


def test_a_killed_run_leaves_half_a_line(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 0, "a": NaN}\n{"step": 1, "a"', "utf-8")
    (tmp_path / "designs.jsonl").write_text('[1]\n{"no": "step"}\n\n', "utf-8")
    records = read_run(tmp_path)
    assert records.metrics == [{"step": 0, "a": None}]
    assert records.designs == []
    assert not records.finished
    found = " ".join(records.problems)
    for part in ("config.yaml", "metrics.jsonl:2: not readable", "designs.jsonl:1: no object"):
        assert part in found


def test_the_later_line_of_a_step_counts(tmp_path):
    lines = [{"step": 0, "a": 1}, {"step": 1, "a": 2}, {"step": 0, "a": 3}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "metrics.jsonl").write_text(text, "utf-8")
    assert read_run(tmp_path).metrics == [{"step": 0, "a": 3}, {"step": 1, "a": 2}]


@pytest.mark.parametrize(
    "line",
    [
        {"slot": [1]},
        {"slot": "a"},
        {"slot": 0, "try": None},
        {"slot": True},
        {"source": 5},
        {"findings": "x"},
        {"findings": [1]},
        {"findings": [{"severity": "error"}]},
        {"hints_refused": 3},
    ],
)
def test_a_try_that_can_not_be_read_is_named_and_left_out(tmp_path, line):
    rows = [{"step": 0, "slot": 1, "try": 0, "verdict": "rejected"}, {"step": 0, **line}]
    (tmp_path / "designs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "config.yaml").write_text("steps: 1\n")
    records = read_run(tmp_path)
    assert records.designs == rows[:1]
    assert len(records.problems) == 1
    assert "designs.jsonl" in records.problems[0]


def test_logs_that_are_folders_and_words_that_nobody_knows_are_named(tmp_path):
    (tmp_path / "designs.jsonl").mkdir()
    (tmp_path / "metrics.jsonl").write_text('{"step": 0}\n')
    (tmp_path / "config.yaml").write_text("seed_pairing: zz\nreturn_mode: [3]\n")
    (tmp_path / "episodes" / "step-000000.jsonl").mkdir(parents=True)
    records = read_run(tmp_path)
    assert list(records.episodes()) == [(0, [])]
    assert build_cards(records) == []
    assert records.config == {}
    assert " ".join(records.problems).count("can't be read (Is a directory)") >= 2
    assert "seed_pairing='zz' is not known" in " ".join(records.problems)


def test_a_damaged_play_leaves_the_report_standing(run_folder, tmp_path):
    shutil.copytree(run_folder, tmp_path / "run")
    path = tmp_path / "run" / "episodes" / "step-000000.jsonl"
    play = json.loads(path.read_text().splitlines()[0])
    damaged = [{"rewards": "x"}, {"rewards": [1, "x"]}, {"arm": 5}, {"observations": 3}]
    damaged += [{"messages": ["x"], "turns": None}, {"return": "z"}, {"episode_return": "z"}]
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({**play, **change}) + "\n" for change in damaged)
    written, problems = write_report(tmp_path / "run")
    assert written.is_file()
    assert problems == ["step-000000.jsonl: 7 lines are no episodes"]


def test_what_is_no_run(tmp_path):
    with pytest.raises(UsageError, match="there is no run folder"):
        read_run(tmp_path / "none")
    with pytest.raises(UsageError, match="holds no run"):
        read_run(tmp_path)


def test_the_flush_of_the_last_window_is_no_step(tmp_path):
    (tmp_path / "config.yaml").write_text("steps: 2\n")
    lines = [{"step": 0}, {"step": 1}, {"step": 2, "flush": True}]
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_run(tmp_path).steps_done == 2
    assert read_run(tmp_path).finished
    path.write_text("".join(json.dumps(line) + "\n" for line in lines[:1]))
    assert not read_run(tmp_path).finished


@pytest.mark.parametrize("mode", ["sum", "terminal"])
def test_episodes_in_the_schemas_form_are_read_too(mode):
    line = {"sha256": "a", "seed": 3, "rewards": [0.25, 0.5], "terminated": False}
    hinted = episode_of(line | {"hint": "Left.", "fault": None}, mode)
    assert (hinted["design"], hinted["arm"]) == ("a", "hinted")
    assert hinted["return"] == {"sum": 0.75, "terminal": 0.0}[mode]
    assert episode_of(line, mode)["arm"] == "unhinted"
    assert episode_of(line | {"episode_return": 0.1}, mode)["return"] == 0.1
    assert episode_of(line | {"fault": {"kind": "EnvTimeout"}}, mode)["return"] is None


def test_the_form_of_older_runs_is_kept():
    line = {"design": "a", "arm": "unhinted", "seed": 3, "return": None, "rewards": [1.0]}
    assert episode_of(line) == line


@pytest.mark.parametrize("line", [{}, {"design": "a"}, {"seed": 1}, {"sha256": 5, "seed": 1}])
def test_other_lines_are_no_episodes(line):
    assert episode_of(line) is None
