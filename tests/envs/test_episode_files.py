"""Files of episodes: what servers may put into them, what strangers may, and what a replay sees."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from spade_envs.episodes import Episode, read_episodes, write_episodes
from spade_envs.export import export_episodes
from spade_runtime.errors import UsageError

Spade = Callable[..., tuple[int, str, str]]
HALF = "a\udcffb"  # half of a surrogate pair, as a server's JSON may hold one


def episode(**changes: Any) -> Episode:
    values: dict[str, Any] = {
        "sha256": "0" * 64,
        "seed": 1,
        "observations": ["Say something.", "Well said."],
        "actions": ["north"],
        "rewards": [0.0],
        "messages": [{"role": "assistant", "content": "north"}],
    }
    return Episode.model_validate(values | changes)


def test_half_a_surrogate_pair_is_kept(tmp_path: Path) -> None:
    odd = episode(
        id=HALF, policy=HALF, actions=[{HALF: HALF}], messages=[{"role": "user", "content": HALF}]
    )
    plain = episode(policy="naïve")
    file = tmp_path / "episodes.jsonl"
    assert write_episodes(file, [odd, plain]) == 2
    assert list(read_episodes(file)) == [odd, plain] and "naïve" in file.read_text("utf-8")
    assert export_episodes([odd, plain], tmp_path / "chat.jsonl") == 2
    rows = [json.loads(line) for line in (tmp_path / "chat.jsonl").read_text("utf-8").splitlines()]
    assert rows[0]["id"] == HALF and rows[0]["messages"] == odd.messages


def test_a_table_holds_half_a_surrogate_pair_as_an_escape(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    odd = episode(id=HALF, actions=[HALF], hint=HALF, observations=[HALF, "x"])
    export_episodes([odd], tmp_path / "e.parquet")
    (row,) = parquet.read_table(tmp_path / "e.parquet").to_pylist()
    escaped = "a\\udcffb"
    assert [row["id"], row["hint"], row["actions"][0], row["observations"][0]] == [escaped] * 4


def test_a_number_that_fits_no_column_is_told(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    with pytest.raises(UsageError, match=r"the episodes 1 to 2 fits no column .* as \.jsonl"):
        export_episodes([episode(), episode(token_ids=[[2**64]])], tmp_path / "e.parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[" * 100_000, "line 2: not JSON"),
        ('{"contract_version": ' + "[" * 900 + "]" * 900 + "}", "line 2: .* more than 400 deep"),
        ('{"messages": ' + "[" * 500 + "]" * 500 + "}", "line 2: .* nested more than 400 deep"),
    ],
)
def test_a_line_that_is_nested_too_deeply_is_named(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "episodes.jsonl"
    write_episodes(file, [episode()])
    with file.open("a") as out:
        out.write(line + "\n")
    with pytest.raises(UsageError, match=said):
        list(read_episodes(file))


def test_a_name_in_a_file_can_not_steer_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "episodes.jsonl"
    file.write_text(json.dumps(episode().model_dump(exclude_none=True) | {"\x1b[31m": 1}))
    with pytest.raises(UsageError, match=r"line 1: \\x1b\[31m: Extra inputs"):
        list(read_episodes(file))


def test_what_is_read_can_be_written_and_exported(tmp_path: Path) -> None:
    nested: Any = "x"
    for _ in range(397):
        nested = [nested]
    deep = episode(actions=[{"name": nested}])
    write_episodes(tmp_path / "e.jsonl", [deep])
    assert list(read_episodes(tmp_path / "e.jsonl")) == [deep]
    assert export_episodes([deep], tmp_path / "chat.jsonl") == 1
    if find_spec("pyarrow"):
        assert export_episodes([deep], tmp_path / "e.parquet") == 1


def test_a_replay_sees_that_another_outcome_was_written(isolation: None, spade: Spade) -> None:
    spade("run", "spade/RollingDie-v0", "--model", "solution", "--episodes", 2, "--to", "e.jsonl")
    first, second = (json.loads(line) for line in Path("e.jsonl").read_text().splitlines())
    assert first["solved"] and second["solved"]
    first |= {"solved": False, "id": "\x1b[31m\udcff"}
    second.pop("solved")  # others may leave it out
    Path("e.jsonl").write_text(json.dumps(first) + "\n" + json.dumps(second) + "\n")
    code, out, _ = spade("replay", "e.jsonl")
    assert code == 1 and out.splitlines() == [
        f"episode 1 (\\x1b[31m\\udcff, seed {first['seed']}): "
        f"turn {len(first['actions'])}: solved was False, now True",
        "1 of 2 episodes are the same bit for bit",
    ]
