import json

import pytest

from spade_runtime.errors import UsageError
from spade_train.report import read_run
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
