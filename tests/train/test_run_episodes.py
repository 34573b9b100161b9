"""The episodes that a training run writes can be read and played again."""

import json

import pytest

from spade_envs import suite
from spade_envs.episodes import read_episodes
from spade_envs.manifest import source_hash
from spade_envs.replay import replay
from spade_train.ledger import Ledger
from spade_train.policies.base import Sampling
from spade_train.policies.scripted import ScriptedPolicy
from spade_train.rollout import Group, Rollout, RolloutSettings

CALL = '<tool_call>{"name": "road_km", "arguments": {"start": "Arden", "end": "Esk"}}</tool_call>'


def chatter(messages, rng):
    tools = any("instruction" in str(row["content"]) for row in messages)
    return CALL if tools else rng.choice(["sniff B2", "sniff C3", "dig A1 B2 C3", "what?"])


@pytest.mark.parametrize("name", ["TrufflePatchEnv", "MapRoomEnv"])
@pytest.mark.parametrize("hint", [None, "Look around.\n\nHint: twice."])
def test_lines_of_a_run_replay_bit_for_bit(tmp_path, sandbox, name, hint):
    source = suite.paths()[name].read_text()
    kind = suite.specs()[name].kind
    group = Group("d-1", source_hash(source), source, kind, [3, 4, 5], hint)
    settings = RolloutSettings("compact", Sampling(max_tokens=64), 6, 4096)
    rollout = Rollout(sandbox, ScriptedPolicy(chatter), settings, Ledger(parameters=1))
    plays = rollout.play([group], 0)[0]
    file = tmp_path / "step-000000.jsonl"
    file.write_text("".join(json.dumps(play.to_json(0, "terminal")) + "\n" for play in plays))
    episodes = list(read_episodes(file))
    with sandbox.open(source, instances=3) as session:
        assert replay(session, episodes) == [None, None, None]
    assert [one.seed for one in episodes] == [3, 4, 5]
    assert sum(one.turns for one in episodes) > 0


def test_plays_that_ended_early_are_read(tmp_path):
    line = {"step": 1, "design": "0" * 64, "arm": "unhinted", "seed": 2, "messages": []}
    line |= {"terminated": False, "truncated": True, "solved": False, "name": "d", "turns": 1}
    cut = line | {"observations": ["Go."], "actions": [], "rewards": [0.0], "return": 0.0}
    fault = {"kind": "HostStarved", "code": None, "message": "busy", "host": True}
    void = line | {"observations": [], "actions": [], "rewards": [], "fault": fault}
    file = tmp_path / "step-000001.jsonl"
    file.write_text(json.dumps(cut) + "\n" + json.dumps(void) + "\n")
    first, second = read_episodes(file)
    assert first.turns == 0 and first.truncated
    assert second.fault is not None and second.fault.host
