"""Reading a run folder, whatever state it is in: a killed run leaves half a line at most."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spade_runtime.errors import UsageError

Row = dict[str, Any]
MAX_PROBLEMS = 50


@dataclass(slots=True)
class RunRecords:
    """What a run wrote down.

    Attributes:
        path: the run's folder.
        config: its resolved configuration.
        config_text: the same as it stands in the file.
        metrics: one object a step, in order.
        designs: one object a try, in order.
        problems: lines and files that could not be read.
    """

    path: Path
    config: Row
    config_text: str
    metrics: list[Row]
    designs: list[Row]
    problems: list[str] = field(default_factory=list)

    def episodes(self) -> Iterator[tuple[int, list[Row]]]:
        """Yield each step and its episodes, one file in memory at a time."""
        for path in sorted((self.path / "episodes").glob("step-*.jsonl")):
            number = path.stem.removeprefix("step-")
            if number.isdigit():
                needed = ("design", "arm", "seed")
                rows = [r for r in read_jsonl(path, self.problems) if all(k in r for k in needed)]
                yield int(number), rows

    @property
    def steps_done(self) -> int:
        """Steps that were finished; the flush of the last window is none of them."""
        return sum(not row.get("flush") for row in self.metrics)

    @property
    def finished(self) -> bool:
        """Whether the last step of the configuration was reached."""
        steps = self.config.get("steps")
        return isinstance(steps, int) and 0 < steps <= self.steps_done


def read_run(path: Path) -> RunRecords:
    """Read a run's folder.

    Raises:
        UsageError: there is no such folder, or it holds no run.
    """
    if not path.is_dir():
        raise UsageError(f"there is no run folder {path}; name one, such as runs/demo")
    metrics, designs = path / "metrics.jsonl", path / "designs.jsonl"
    if not metrics.exists() and not designs.exists():
        raise UsageError(
            f"{path} holds no run: neither metrics.jsonl nor designs.jsonl is there; "
            "`spade train` makes a run folder"
        )
    problems: list[str] = []
    config, text = _read_config(path / "config.yaml", problems)
    steps = {int(r["step"]): r for r in read_jsonl(metrics, problems) if _has_step(r)}
    # A resumed run writes the steps after its checkpoint again: the later line counts.
    tries = {
        (int(r["step"]), r.get("slot", 0), r.get("try", 0)): r
        for r in read_jsonl(designs, problems)
        if _has_step(r)
    }
    return RunRecords(
        path,
        config,
        text,
        [steps[step] for step in sorted(steps)],
        [tries[key] for key in sorted(tries)],
        problems,
    )


def read_jsonl(path: Path, problems: list[str]) -> Iterator[Row]:
    """Yield the objects of a JSONL file; what can't be read is noted and passed over."""
    if not path.exists():
        return
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line, parse_constant=_no_number)
            except (ValueError, RecursionError) as error:
                _note(problems, f"{path.name}:{number}: not readable ({error})")
                continue
            if isinstance(row, dict):
                yield row
            else:
                _note(problems, f"{path.name}:{number}: no object")


def rounded(value: Any) -> Any:
    """Return a number short enough for a page; what is no finite number becomes None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value != value or value in (float("inf"), float("-inf")):
        return None
    return value if isinstance(value, int) else float(f"{value:.5g}")


def _has_step(row: Row) -> bool:
    return isinstance(row.get("step"), int)


def _no_number(_word: str) -> None:
    """Read NaN and the infinities, which are no JSON, as nothing."""


def _note(problems: list[str], text: str) -> None:
    if len(problems) < MAX_PROBLEMS:
        problems.append(text)


def _read_config(path: Path, problems: list[str]) -> tuple[Row, str]:
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        data = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        _note(problems, f"{path.name}: not readable ({error})")
        return {}, ""
    return (data, text) if isinstance(data, dict) else ({}, text)
