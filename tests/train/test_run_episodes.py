"""The episodes that a training run writes are episodes like any other: read, and played again."""

import json

import pytest

from spade_envs import suite
from spade_envs.agents import TextAgent
from spade_envs.commands.replay import command
from spade_envs.episodes import Episode, read_episodes
from spade_envs.export import chat_row
from spade_envs.manifest import source_hash
from spade_envs.pool import Pool
from spade_envs.replay import replay
from spade_envs.rolling import roll
from spade_train.ledger import Ledger
from spade_train.plays import Group, Play
from spade_train.policies.base import Sampling
from spade_train.policies.scripted import ScriptedPolicy
from spade_train.rollout import Rollout, RolloutSettings

CALL = '<tool_call>{"name": "road_km", "arguments": {"start": "Arden", "end": "Esk"}}</tool_call>'
TURNS = 6


def chatter(messages, rng):
    tools = any("instruction" in str(row["content"]) for row in messages)
    return CALL if tools else rng.choice(["sniff B2", "sniff C3", "dig A1 B2 C3", "what?"])


def play(sandbox, name, hint, script=chatter):
    source = suite.paths()[name].read_text()
    kind = suite.specs()[name].kind
    group = Group("000000-001", source_hash(source), source, kind, [3, 4, 5], hint)
    settings = RolloutSettings("compact", Sampling(max_tokens=64), TURNS, 4096)
    rollout = Rollout(sandbox, ScriptedPolicy(script), settings, Ledger(parameters=1))
    return rollout.play([group], 0)[0]


def write(path, plays):
    lines = [json.dumps(one.to_json(0, "terminal", TURNS)) + "\n" for one in plays]
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize("name", ["TrufflePatchEnv", "MapRoomEnv"])
@pytest.mark.parametrize("hint", [None, "Look around.\n\nHint: twice."])
def test_lines_of_a_run_replay_bit_for_bit(tmp_path, sandbox, name, hint):
    plays = play(sandbox, name, hint)
    episodes = list(read_episodes(write(tmp_path / "step-000000.jsonl", plays)))
    with sandbox.open(suite.paths()[name], instances=3) as session:
        assert replay(session, episodes) == [None, None, None]
    assert [one.seed for one in episodes] == [3, 4, 5]
    assert sum(one.turns for one in episodes) > 0
    assert {(one.id, one.policy) for one in episodes} == {(suite.specs()[name].id, "scripted")}
    assert {(one.hint, one.max_turns, one.arm) for one in episodes} == {
        (hint, TURNS, "hinted" if hint else "unhinted")
    }
    for one, ended in zip(episodes, plays, strict=True):
        told = str(one.messages[0]["content"])
        assert told.endswith(f"{one.observations[0]}\n\nHint: {hint}") == bool(hint)
        assert one.episode_return == ended.value("terminal")


@pytest.mark.parametrize("name", ["TrufflePatchEnv", "MapRoomEnv"])
def test_conversations_are_exported_alike_whoever_recorded_them(tmp_path, sandbox, name):
    file = write(tmp_path / "step-000000.jsonl", play(sandbox, name, "Look around."))
    trained = list(read_episodes(file))
    with sandbox.open(suite.paths()[name], instances=3) as session:
        agent = TextAgent("sniff B2")
        rolled = list(roll(session, agent, [3, 4, 5], hint="Look around.", max_turns=2))
    assert any(one.truncated for one in rolled)
    rows = [chat_row(one) for one in [*trained, *rolled]]
    assert {(row["id"], row["hint"], row["arm"]) for row in rows} == {
        (suite.specs()[name].id, "Look around.", "hinted")
    }
    assert {row["policy"] for row in rows} == {"scripted", "text:sniff B2"}
    for row, one in zip(rows, [*trained, *rolled], strict=True):
        assert row["messages"][-1]["role"] == "assistant"
        assert [m["role"] for m in row["messages"]].count("assistant") == one.turns
    silent = rolled[0].model_copy(update={"hint": None, "messages": rolled[0].messages[:1]})
    assert chat_row(silent)["messages"] == silent.messages
    assert chat_row(silent)["arm"] == "unhinted"


def test_a_changed_line_is_found(tmp_path, sandbox):
    file = write(tmp_path / "step-000000.jsonl", play(sandbox, "TrufflePatchEnv", None))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows[1]["observations"][1] += "!"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with sandbox.open(suite.paths()["TrufflePatchEnv"], instances=3) as session:
        found = replay(session, list(read_episodes(file)))
    assert [gap and (gap.turn, gap.field) for gap in found] == [None, (1, "observation"), None]


def test_plays_that_ended_early_are_episodes_too():
    group = Group("000000-001", "0" * 64, "", "game", [2])
    cut = Play(group, 2, ["Go."], ["and so on"], [], [0.0], truncated=True, cut=True)
    first = Episode.model_validate(cut.to_json(1, "sum", 8))
    assert (first.turns, first.truncated, first.rewards, first.episode_return) == (0, True, [], 0.0)
    fault = {"kind": "HostStarved", "code": None, "message": "busy", "host": True}
    second = Episode.model_validate(Play(group, 2, fault=fault).to_json(1, "sum", 8))
    assert second.fault is not None
    assert second.fault.host
    assert second.episode_return is None
    assert second.observations == [""]


def test_the_command_finds_sources_in_the_pool_of_the_run(tmp_path, sandbox, capsys):
    source = suite.paths()["TrufflePatchEnv"].read_text() + "# of this run\n"
    spec = suite.specs()["TrufflePatchEnv"].model_copy(update={"sha256": source_hash(source)})
    Pool(tmp_path / "pool", create=True).add_many([(source, spec, None)])
    group = Group("000000-001", spec.sha256, source, "game", [7, 8], "Sniff first.")
    settings = RolloutSettings("compact", Sampling(max_tokens=64), TURNS, 4096)
    plays = Rollout(sandbox, ScriptedPolicy(chatter), settings, Ledger(parameters=1)).play([group])
    (tmp_path / "episodes").mkdir()
    file = write(tmp_path / "episodes" / "step-000000.jsonl", plays[0])
    import argparse

    parser = argparse.ArgumentParser()
    command.configure(parser)
    assert command.run(parser.parse_args([str(file)])) == 0
    assert "2 of 2 episodes are the same bit for bit" in capsys.readouterr().out
