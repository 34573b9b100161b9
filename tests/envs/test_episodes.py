"""Rolling, recording, replaying and exporting episodes, in the real sandbox."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spade_envs import suite
from spade_envs.agents import RandomAgent, SolutionAgent, TextAgent, make_agent
from spade_envs.episodes import Episode, Recording, as_chat, read_episodes, write_episodes
from spade_envs.export import export_episodes
from spade_envs.replay import replay
from spade_envs.results import mean, summarise, wilson
from spade_envs.rolling import episode_seeds, roll
from spade_runtime.errors import UsageError
from spade_runtime.sandbox import SandboxPool

FAULTY = '''
class BrittleEnv(TextEnv):
    """Say anything but boom."""

    skill = "logical_deduction"
    max_turns = 5

    def reset(self, seed=None):
        self.seed = seed
        return f"Task {seed}. Say something.", {}

    def step(self, action):
        if action == "boom":
            raise RuntimeError("it broke")
        return f"You said {action!r}.", 0.0, False, False, {}
'''


def play(sandbox: SandboxPool, name: str, agent: Any, count: int = 6) -> list[Episode]:
    with sandbox.open(suite.paths()[name], instances=4) as session:
        return list(roll(session, agent, episode_seeds(count)))


@pytest.mark.parametrize("name", ["RollingDieEnv", "StampDrawerEnv", "FilmLabEnv", "MapRoomEnv"])
def test_solutions_solve_and_replay_bit_for_bit(sandbox: SandboxPool, name: str) -> None:
    episodes = play(sandbox, name, SolutionAgent())
    assert all(one.solved and one.terminated and one.policy == "solution" for one in episodes)
    assert [one.seed for one in episodes] == episode_seeds(6)
    with sandbox.open(suite.paths()[name], instances=3) as session:
        assert replay(session, episodes) == [None] * 6


@pytest.mark.parametrize("name", ["TrufflePatchEnv", "ObservatoryNightEnv", "DominoHallEnv"])
def test_random_play_is_the_same_twice_and_replays(sandbox: SandboxPool, name: str) -> None:
    episodes = play(sandbox, name, RandomAgent())
    assert episodes == play(sandbox, name, RandomAgent())
    assert sum(one.solved for one in episodes) < len(episodes)
    with sandbox.open(suite.paths()[name], instances=6) as session:
        assert replay(session, episodes) == [None] * 6


def test_episodes_survive_the_file(sandbox: SandboxPool, tmp_path: Path) -> None:
    episodes = play(sandbox, "MapRoomEnv", RandomAgent(), 3)
    file = tmp_path / "sub" / "episodes.jsonl"
    assert write_episodes(file, episodes[:1]) == 1
    assert write_episodes(file, episodes[1:], append=True) == 2
    assert list(read_episodes(file)) == episodes


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("observation", lambda row: row["observations"].__setitem__(1, "another")),
        ("reward", lambda row: row["rewards"].__setitem__(0, 0.125)),
        ("truncated", lambda row: row.update(truncated=not row["truncated"])),
        ("fault", lambda row: row.update(fault={"kind": "EnvTimeout", "code": "SPD801"})),
    ],
)
def test_a_replay_names_the_first_difference(sandbox: SandboxPool, field: str, change: Any) -> None:
    row = play(sandbox, "BrassCalculatorEnv", TextAgent("crank 2"), 1)[0].model_dump(mode="json")
    change(row)
    with sandbox.open(suite.paths()["BrassCalculatorEnv"]) as session:
        gap = replay(session, [Episode.model_validate(row)])[0]
    assert gap is not None and gap.field == field
    assert gap.turn == (1 if field in ("observation", "reward") else 6)
    assert f"turn {gap.turn}: {field} was " in gap.text()


def test_a_replay_with_another_source_is_refused(sandbox: SandboxPool) -> None:
    episodes = play(sandbox, "StampDrawerEnv", RandomAgent(), 1)
    with (
        sandbox.open(suite.paths()["LampRoundEnv"]) as session,
        pytest.raises(UsageError, match="recorded with the source"),
    ):
        replay(session, episodes)


def test_a_fault_is_recorded_and_replays(sandbox: SandboxPool) -> None:
    with sandbox.open(FAULTY, instances=2) as session:
        bad = list(roll(session, TextAgent("boom"), [1, 2]))
        good = list(roll(session, TextAgent("hello"), [3]))
    assert [one.fault.code for one in bad if one.fault] == ["SPD401", "SPD401"]
    assert good[0].fault is None and good[0].truncated and good[0].turns == 5
    summary = summarise([*bad, *good])
    assert summary.faults == 2 and summary.solved == wilson(0, 1)
    with sandbox.open(FAULTY, instances=3) as session:
        assert replay(session, [*bad, *good]) == [None] * 3


def test_a_lower_limit_and_a_hint_are_recorded(sandbox: SandboxPool) -> None:
    with sandbox.open(FAULTY) as session:
        one = next(roll(session, TextAgent("hello"), [9], hint="Say hello.", max_turns=2))
    assert one.turns == 2 and one.max_turns == 2 and one.hint == "Say hello."
    assert one.observations[0] == "Task 9. Say something."
    assert one.messages[0]["content"] == "Task 9. Say something.\n\nHint: Say hello."


def test_an_environment_without_a_solution_says_so(sandbox: SandboxPool) -> None:
    with sandbox.open(FAULTY) as session, pytest.raises(UsageError, match="no solution"):
        list(roll(session, SolutionAgent(), [1]))


def test_a_training_run_s_line_is_read(sandbox: SandboxPool, tmp_path: Path) -> None:
    row = play(sandbox, "StampDrawerEnv", RandomAgent(), 1)[0].model_dump(mode="json")
    row |= {"step": 3, "arm": "hinted", "episode_return": 0.0, "name": "000003-001"}
    file = tmp_path / "step-000003.jsonl"
    file.write_text(json.dumps(row) + "\n")
    episode = next(read_episodes(file))
    assert (episode.step, episode.arm, episode.name) == (3, "hinted", "000003-001")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: not JSON, or a line that was cut off"),
        ("[]", "line 1: a JSON list, expected an object"),
        ('{"contract_version": 3}', "written for contract 3"),
        ('{"seed": 1}', "line 1: sha256: Field required"),
        (
            json.dumps(
                {"sha256": "0" * 64, "seed": 1, "observations": [], "actions": [], "rewards": []}
            ),
            "0 observations for 0 actions, not one more",
        ),
    ],
)
def test_lines_that_are_no_episodes_are_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "episodes.jsonl"
    file.write_text(text + "\n")
    with pytest.raises(UsageError, match=message):
        list(read_episodes(file))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't read episodes from"):
        list(read_episodes(tmp_path / "none.jsonl"))


def test_structured_calls_get_one_answer_each() -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}},
        {"name": "y", "arguments": {}},
    ]
    chat = as_chat(
        {"role": "assistant", "content": None, "tool_calls": calls}, "[1] done\n[2] seen"
    )
    assert [row["role"] for row in chat] == ["assistant", "tool", "tool"]
    assert [row["id"] for row in chat[0]["tool_calls"]] == ["a", "call_1"]
    assert [row["tool_call_id"] for row in chat[1:]] == ["a", "call_1"]
    assert [row["content"] for row in chat[1:]] == ["done", "seen"]


def test_chat_export_holds_the_conversation(sandbox: SandboxPool, tmp_path: Path) -> None:
    episodes = play(sandbox, "TrufflePatchEnv", RandomAgent(), 3)
    target = tmp_path / "chat.jsonl"
    assert export_episodes(episodes, target) == 3
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert [row["role"] for row in rows[0]["messages"]][:3] == ["user", "assistant", "user"]
    assert rows[0]["reward_sum"] == episodes[0].total
    assert rows[0]["episode_return"] is None
    with pytest.raises(UsageError, match="is there already"):
        export_episodes(episodes, target)
    with pytest.raises(UsageError, match=r"\.jsonl or \.parquet"):
        export_episodes(episodes, tmp_path / "chat.csv")


def test_parquet_export_holds_every_turn(sandbox: SandboxPool, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    episodes = play(sandbox, "MapRoomEnv", SolutionAgent(), 3)
    episodes[0] = episodes[0].model_copy(update={"episode_return": 0.5})
    export_episodes(episodes, tmp_path / "episodes.parquet")
    rows = parquet.read_table(tmp_path / "episodes.parquet").to_pylist()
    assert [row["seed"] for row in rows] == [one.seed for one in episodes]
    assert rows[0]["observations"] == episodes[0].observations
    assert json.loads(rows[0]["actions"][0]) == episodes[0].actions[0]
    assert [row["episode_return"] for row in rows] == [0.5, None, None]
    assert [row["reward_sum"] for row in rows] == [one.total for one in episodes]


def test_intervals_are_those_of_the_textbook() -> None:
    assert wilson(0, 16).high == pytest.approx(0.19361, abs=1e-5)
    assert wilson(16, 16).low == pytest.approx(1 - 0.19361, abs=1e-5)
    assert wilson(5, 10).low == pytest.approx(0.23659, abs=1e-5)
    for count in range(1, 80):
        for won in range(count + 1):
            assert 0 <= wilson(won, count).low <= won / count <= wilson(won, count).high <= 1
    estimate = mean([0.0, 1.0, 1.0, 0.0])
    assert estimate.value == 0.5
    assert estimate.high - 0.5 == pytest.approx(1.959964 * (1 / 3) ** 0.5 / 2, abs=1e-6)


def test_agents_are_found_by_name_and_suggested() -> None:
    assert isinstance(make_agent("random"), RandomAgent)
    assert make_agent("text:go north").reply([]) == []
    with pytest.raises(UsageError, match="did you mean 'random'"):
        make_agent("randon")
    with pytest.raises(UsageError, match="a local model by its directory"):
        make_agent("nothing-like-it")


def test_a_recording_can_be_stopped_midway(sandbox: SandboxPool) -> None:
    with sandbox.open(suite.paths()["RollingDieEnv"]) as session:
        record = Recording(session.spec, 4, session.reset([4])[0], max_turns=16)
        record.add("north", session.step(["north"])[0])
        assert not record.over
        assert record.episode().turns == 1 and not record.episode().truncated
