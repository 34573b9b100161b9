"""Reading a run folder, whatever state it is in: a killed run leaves half a line at most."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, cast, get_args

from spade_runtime.errors import UsageError
from spade_train.rewards import Pairing, ReturnMode, episode_return

Row = dict[str, Any]
MAX_PROBLEMS = 50

Form = type | UnionType
# What the report reads of a line of `designs.jsonl` and of one of an episodes file.
TRY: Mapping[str, Form] = {
    "slot": int,
    "try": int,
    "sha256": str | None,
    "source": str | None,
    "hint": str | None,
    "title": str | None,
    "skill": str | None,
    "kind": str | None,
    "findings": list | None,
    "hints_refused": list | None,
    "exemplars": list | None,
}
EPISODE: Mapping[str, Form] = {
    "arm": str | None,
    "rewards": list | None,
    "observations": list | None,
    "actions": list | None,
    "messages": list | None,
    "turns": int | None,
    "episode_return": int | float | None,
    "return": int | float | None,
}


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

    def episodes(self, only: int | None = None) -> Iterator[tuple[int, list[Row]]]:
        """Yield each step and its episodes, one file in memory at a time.

        Args:
            only: the one step that is wanted; all of them by default.
        """
        chosen = self.config.get("return_mode")
        mode = cast(ReturnMode, chosen if chosen in get_args(ReturnMode) else "terminal")
        for path in sorted((self.path / "episodes").glob("step-*.jsonl")):
            number = path.stem.removeprefix("step-")
            if number.isdecimal() and only in (None, int(number)):
                lines = [episode_of(line, mode) for line in read_jsonl(path, self.problems)]
                whole = [line for line in lines if line is not None]
                if len(whole) < len(lines):
                    lost = len(lines) - len(whole)
                    _note(self.problems, f"{path.name}: {lost} lines are no episodes")
                yield int(number), whole

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
        (r["step"], r.get("slot", 0), r.get("try", 0)): r
        for r in read_jsonl(designs, problems)
        if _has_step(r) and _fits(r, TRY, designs.name, problems)
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
    try:
        lines = path.open("rb")
    except OSError as error:
        _note(problems, f"{path.name}: can't be read ({error.strerror})")
        return
    with lines:
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


def episode_of(line: Row, mode: ReturnMode = "terminal") -> Row | None:
    """Return a line of an episodes file in the form that this package reads.

    Runs write the form of `schemas/episode.schema.json`: the environment is `sha256`, the return
    `episode_return`, and the hint stands apart from the first observation. Older runs named them
    `design` and `return`; an episode that was recorded elsewhere may lack arm and return.

    Returns:
        The episode, or None where the line is none.
    """
    design = line.get("design") or line.get("sha256")
    if not isinstance(design, str) or not isinstance(line.get("seed"), int):
        return None
    if not _fits(line, EPISODE, "", []) or not all(map(_is_number, line.get("rewards") or ())):
        return None
    if not all(isinstance(m, dict) for m in line.get("messages") or ()) and not line.get("turns"):
        return None
    episode = {**line, "design": design}
    if not episode.get("arm"):
        episode["arm"] = "hinted" if line.get("hint") else "unhinted"
    if "episode_return" in line:
        episode["return"] = line["episode_return"]
    elif "return" not in line:
        rewards = line.get("rewards") or ()
        worth = episode_return(rewards, bool(line.get("terminated")), mode=mode)
        episode["return"] = None if line.get("fault") else worth
    return episode


def rounded(value: Any) -> Any:
    """Return a number short enough for a page; what is no finite number becomes None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value != value or value in (float("inf"), float("-inf")):
        return None
    return value if isinstance(value, int) else float(f"{value:.5g}")


def _has_step(row: Row) -> bool:
    step = row.get("step")
    return isinstance(step, int) and not isinstance(step, bool)


def _fits(row: Row, forms: Mapping[str, Form], where: str, problems: list[str]) -> bool:
    """Whether what a row holds can be read as what it should; what it lacks is no matter."""
    for key, form in forms.items():
        value = row.get(key)
        if key in row and (not isinstance(value, form) or isinstance(value, bool)):
            _note(problems, f"{where}: {key}={value!r:.80} of step {row.get('step')} is not usable")
            return False
    whole = all(isinstance(one, dict) and "code" in one for one in row.get("findings") or ())
    if not whole:
        _note(problems, f"{where}: a finding of step {row.get('step')} has no code")
    return whole


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
    if not isinstance(data, dict):
        return {}, text
    for key, known in (("seed_pairing", Pairing), ("return_mode", ReturnMode)):
        if key in data and data[key] not in get_args(known):
            _note(problems, f"{path.name}: {key}={data.pop(key)!r} is not known; taken as default")
    return data, text
