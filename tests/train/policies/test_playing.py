"""Models on this machine as agents of `spade run` and `spade play`."""

from __future__ import annotations

import pytest

from spade_envs import suite
from spade_envs.agents import AgentSettings, View
from spade_envs.replay import replay
from spade_envs.rolling import episode_seeds, roll
from spade_runtime.errors import UsageError
from spade_runtime.sandbox import SandboxPool
from spade_runtime.spec import ToolSpec
from spade_train.policies.playing import ModelAgent, hf_agent
from spade_train.policies.scripted import ScriptedPolicy, fixed
from spade_train.policies.text import parse

PING = ToolSpec(name="ping", description="Ping.", parameters={"type": "object", "properties": {}})
CALL = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'


def view(*contents, tools=(), seed=1):
    roles = ["user", "assistant"] * len(contents)
    rows = [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)]
    return View(rows, tools, seed)


def test_the_prompt_is_the_one_that_training_uses():
    agent = ModelAgent(fixed("north"), AgentSettings(), "full")
    messages, tools = parse(agent._prompt(view("Where to?", "south", "A wall.")))
    assert [row["role"] for row in messages] == ["system", "user", "assistant", "user"]
    assert "\\boxed{action}" in messages[0]["content"] and tools == []
    compact = ModelAgent(fixed("north"), AgentSettings(), "compact")
    assert [row["role"] for row in parse(compact._prompt(view("Where to?")))[0]] == ["user"]


def test_results_of_calls_come_from_the_tools():
    agent = ModelAgent(fixed(CALL), AgentSettings(), "compact")
    asked = view("Ping twice.", CALL + CALL, "[1] pong\n[2] ping", tools=(PING,))
    messages, tools = parse(agent._prompt(asked))
    assert [row["content"] for row in messages if row["role"] == "tool"] == ["pong", "ping"]
    assert tools[0]["name"] == "ping"
    reminded = view("Ping.", "Hello!", "Call a tool.", tools=(PING,))
    assert parse(agent._prompt(reminded))[0][-1]["role"] == "user"


def test_a_full_context_gets_no_answer():
    policy = ScriptedPolicy(lambda *_: "north")
    policy.context_tokens = 40
    agent = ModelAgent(policy, AgentSettings(), "compact")
    assert agent.reply([view("Where?"), view("Where to, " * 20)]) == ["north", ""]


def test_a_model_from_a_folder_rolls_and_replays(make_model, make_tokenizer, tmp_path):
    tokenizer = make_tokenizer()
    make_model(len(tokenizer)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    agent = hf_agent(str(tmp_path), AgentSettings(temperature=1.0, top_p=1.0, max_tokens=6))
    source = suite.paths()["SeriesLadderEnv"]
    with SandboxPool() as pool, pool.open(source, instances=2) as session:
        episodes = list(roll(session, agent, episode_seeds(2)))
        assert episodes == list(roll(session, agent, episode_seeds(2)))
        assert replay(session, episodes) == [None, None]
    assert episodes[0].policy == tmp_path.name


def test_a_model_must_be_named():
    with pytest.raises(UsageError, match="hf:./my-model"):
        hf_agent("", AgentSettings())
