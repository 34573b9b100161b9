"""BFCL: its own data and backends, played under the contract."""

from __future__ import annotations

import importlib.util
import json
import pickle
from typing import Any

import pytest

from spade_envs.adapters import bfcl
from spade_envs.adapters.bfcl_calls import as_schema, as_text
from spade_runtime.errors import UsageError

HERE = importlib.util.find_spec("bfcl_eval") is not None
needs_bfcl = pytest.mark.skipif(not HERE, reason="bfcl-eval is not installed")
# BFCL's own reference passes a text where its own schema asks for an integer.
ODD = {"multi_turn_base_173", "multi_turn_long_context_173"}


def test_schemas_and_results_are_translated() -> None:
    given = {
        "type": "dict",
        "properties": {
            "km": {"type": "float", "description": "far", "default": 1.5},
            "name": {"type": "string", "default": "None"},
            "pairs": {"type": "array", "items": {"type": "tuple"}},
            "any": {"type": "any"},
        },
        "required": ["km"],
    }
    assert as_schema(given) == {
        "type": "object",
        "required": ["km"],
        "properties": {
            "km": {"type": "number", "description": "far", "default": 1.5},
            "name": {"type": "string"},
            "pairs": {"type": "array", "items": {"type": "array"}},
            "any": {},
        },
    }
    assert as_text({"a": 1}) == '{"a": 1}' and as_text({"a": {1}}) == "{'a': {1}}"
    assert as_text(None) == "None" and as_text("x") == "x"


@needs_bfcl
@pytest.mark.parametrize("category", bfcl.CATEGORIES)
def test_every_reference_solves_its_task(category: str) -> None:
    unsolved, played = set(), 0
    for names, count in bfcl.backends(category).items():
        env = bfcl.BfclEnv(list(names), category=category)
        assert len(env.tasks) == count
        for seed in range(count):
            env.reset(seed=seed)
            messages = env.session.solution()[0]
            assert messages is not None
            for message in messages:
                result = env.session.act([message])[0]
                if result.terminated or result.truncated:
                    break
            played += 1
            if not (result.info["spade"]["solved"] and result.reward == 1.0):
                unsolved.add(env.tasks[seed])
        env.close()
    assert played == 198 and unsolved <= ODD


@needs_bfcl
def test_a_desk_is_played_by_messages() -> None:
    env = bfcl.BfclEnv(["GorillaFileSystem", "TwitterAPI"])
    seed = env.tasks.index("multi_turn_base_0")
    first, info = env.reset(seed=seed)
    assert first.startswith("Move 'final_report.pdf'") and info["task"] == "multi_turn_base_0"
    tools = {row["function"]["name"] for row in info["spade"]["tools"]}
    assert {"cd", "mkdir", "mv", "post_tweet"} <= tools
    text = "".join(
        f"<tool_call>\n{json.dumps({'name': name, 'arguments': given})}\n</tool_call>"
        for name, given in (
            ("cd", {"folder": "document"}),
            ("mkdir", {"dir_name": "temp"}),
            ("mv", {"source": "final_report.pdf", "destination": "temp"}),
        )
    )
    said, reward, terminated, truncated, info = env.step(text)
    assert "Next instruction: Perform a detailed search" in said
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info["spade"]["credit"] == 0.25
    # What a backend refuses, what is no tool, and what has the wrong type are answers.
    said = env.step([{"name": "cd", "arguments": {"folder": "nowhere"}}])[0]
    assert "no such directory" in said.lower() or "error" in said.lower()
    assert env.step([{"name": "cd", "arguments": {"folder": 3}}])[0].startswith("Error: folder")
    assert env.step([{"name": "_load_scenario", "arguments": {}}])[0].startswith("Error")
    assert env.step("I am done.\n<answer>done</answer>")[4]["spade"]["credit"] == 0.25
    again: Any = pickle.loads(pickle.dumps(env))
    assert again.reset(seed=seed)[0] == first


@needs_bfcl
def test_wrong_state_completes_nothing() -> None:
    env = bfcl.BfclEnv(["GorillaFileSystem", "TwitterAPI"])
    env.reset(seed=env.tasks.index("multi_turn_base_0"))
    env.step([{"name": "cd", "arguments": {"folder": "document"}}])
    env.step([{"name": "mkdir", "arguments": {"dir_name": "elsewhere"}}])
    env.step([{"name": "mkdir", "arguments": {"dir_name": "temp"}}])
    move = {"source": "final_report.pdf", "destination": "temp"}
    result = env.step([{"name": "mv", "arguments": move}])
    assert result[4]["spade"]["credit"] == 0.0  # the folder too many makes another state


@needs_bfcl
def test_unknown_sets_are_refused() -> None:
    with pytest.raises(UsageError, match="no task of base uses just MathAPI.*TicketAPI TravelAPI"):
        bfcl.BfclEnv(["MathAPI"])
    with pytest.raises(UsageError, match="there is no category 'miss_func'"):
        bfcl.backends("miss_func")
