import io

from rich.console import Console

from spade_train.run_folder import RunFolder
from spade_train.summary import print_summary, read_lines


def test_damaged_lines_leave_the_tables_of_the_others(tmp_path):
    (tmp_path / "metrics.jsonl").write_bytes(
        b'{"step" 0}\n{"step": 1, "seconds": 2.5, "agent/win_rate": "x", "tokens/agent": 1200}\n'
        b'{"step": 2, "seconds": null, "agent/win_rate": 0.25, "tokens/agent": [3]}\n{"st'
    )
    (tmp_path / "designs.jsonl").write_bytes(
        b'{"step": 1, "slot": 0, "try": 0, "verdict": "accepted", "source": "x"}\n'
        b'\xff\xfe\n{"step": 1, "slot": 1, "try": 0, "findings": [{}], "source": "x"}\n'
    )
    said = io.StringIO()
    print_summary(RunFolder(tmp_path), Console(file=said, width=120))
    rows = [" ".join(line.replace("%", "").split()) for line in said.getvalue().splitlines()]
    assert "written 1 100" in rows
    table = [row for row in rows if row[:4] == "step" or row[:1].isdecimal()]
    assert table == ["step wins seconds", "2 - 2.5", "3 25 -"]
    assert [line["step"] for line in read_lines(tmp_path / "metrics.jsonl")] == [1, 2]
    assert read_lines(tmp_path / "none.jsonl") == []
