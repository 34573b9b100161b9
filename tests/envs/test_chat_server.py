"""A model behind a URL: what is sent, what is taken, and what is said when it goes wrong."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from spade_envs.agents import AgentSettings, View, make_agent
from spade_envs.chat_server import ChatServerAgent
from spade_runtime.errors import HostError, SpadeError, UsageError
from spade_runtime.spec import ToolSpec

PING = ToolSpec(
    name="ping",
    description="Ping a host.",
    parameters={"type": "object", "properties": {"host": {"type": "string"}}},
)


def view(text: str = "Where to?", tools: tuple[ToolSpec, ...] = (), seed: int = 7) -> View:
    return View([{"role": "user", "content": text}], tools, seed)


def test_conversation_sampling_and_seed_are_sent(chat_server: Any) -> None:
    agent = make_agent(chat_server.url, AgentSettings(temperature=0.25, max_tokens=33))
    assert agent.name == "stub-model"
    assert agent.reply([view(), view("And now?", seed=8)]) == ["1", "1"]
    bodies = sorted(chat_server.asked, key=lambda body: body["seed"])
    assert [row["role"] for row in bodies[0]["messages"]] == ["system", "user"]
    assert "\\boxed{" in bodies[0]["messages"][0]["content"]
    assert bodies[0]["messages"][1]["content"] == "Where to?"
    assert [body["seed"] for body in bodies] == [7, 8]
    assert bodies[0]["temperature"] == 0.25 and bodies[0]["max_tokens"] == 33
    assert "tools" not in bodies[0]


def test_tools_are_sent_and_calls_come_back(chat_server: Any, chat_body: Any) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
    chat_server.answer = lambda _: (200, chat_body(None, [call]))
    agent = make_agent(chat_server.url)
    reply = agent.reply([view(tools=(PING,))])[0]
    assert reply == {"role": "assistant", "content": "", "tool_calls": [call]}
    assert chat_server.asked[0]["tools"][0]["function"]["name"] == "ping"


def test_a_system_text_can_be_given_or_left_out(chat_server: Any) -> None:
    make_agent(chat_server.url, AgentSettings(system="Be quick.")).reply([view()])
    make_agent(chat_server.url, AgentSettings(system="")).reply([view()])
    first, second = (body["messages"] for body in chat_server.asked)
    assert first[0] == {"role": "system", "content": "Be quick."}
    assert [row["role"] for row in second] == ["user"]


def test_the_key_is_sent_but_never_told(chat_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "secret-word")
    chat_server.answer = lambda _: (401, "the key secret-word is not known")
    agent = make_agent(chat_server.url, AgentSettings(key_variable="A_KEY"))
    with pytest.raises(UsageError, match=r"HTTP 401: the key \*\*\* is not known"):
        agent.reply([view()])
    assert chat_server.headers[0]["Authorization"] == "Bearer secret-word"


def test_a_busy_server_is_asked_again(chat_server: Any, chat_body: Any) -> None:
    replies = [(503, "busy"), (200, "{"), (200, chat_body("north"))]
    chat_server.answer = lambda _: replies.pop(0)
    agent = ChatServerAgent(chat_server.url, AgentSettings(), pause=0.01)
    assert agent.reply([view()]) == ["north"]
    assert len(chat_server.asked) == 3


@pytest.mark.parametrize(
    "body", ["{}", "[]", '{"choices": []}', '{"choices": [{"message": {"content": 3}}]}']
)
def test_garbage_is_named(chat_server: Any, body: str) -> None:
    chat_server.answer = lambda _: (200, body)
    agent = ChatServerAgent(chat_server.url, AgentSettings(), pause=0.01)
    with pytest.raises(SpadeError, match="answered"):
        agent.reply([view()])


def test_a_refusing_address_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(HostError, match="Check that the server runs"):
        ChatServerAgent(url, AgentSettings(), pause=0.01)


def test_a_stalling_server_is_given_up() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with pytest.raises(HostError, match="no usable answer in 4 tries"):
            ChatServerAgent(url, AgentSettings(timeout=0.05), pause=0.01)


def test_one_model_is_taken_and_of_several_one_must_be_named(chat_server: Any) -> None:
    chat_server.models = ["small", "large"]
    with pytest.raises(UsageError, match="small, large; name one with --model-name"):
        make_agent(chat_server.url)
    assert make_agent(chat_server.url, AgentSettings(model="large")).name == "large"


def test_names_of_models_are_listed_harmlessly(chat_server: Any) -> None:
    chat_server.models = ["\x1b[31mred\x1b[2J", "two\nlines", "x" * 5000]
    with pytest.raises(UsageError) as caught:
        make_agent(chat_server.url)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400
    assert "\\x1b[31mred\\x1b[2J, two\\nlines, xxx" in str(caught.value)


def test_a_model_with_half_a_character_in_its_name_is_played_and_recorded(
    chat_server: Any, spade: Callable[..., tuple[int, str, str]]
) -> None:
    chat_server.models = '{"data": [{"id": "half\\ud800"}]}'
    words = ("StampDrawer", "--model", chat_server.url, "--episodes", 1, "--to", "e.jsonl")
    assert spade("run", *words)[0] == 0
    assert chat_server.asked[0]["model"] == "half?"
    assert spade("replay", "e.jsonl")[0] == 0


def test_run_rolls_a_server_and_writes_episodes(
    chat_server: Any, chat_body: Any, spade: Callable[..., tuple[int, str, str]]
) -> None:
    def solve(body: dict[str, Any]) -> tuple[int, str]:
        text = body["messages"][1]["content"]
        assert text.startswith("A drawer holds plenty of stamps")
        return 200, chat_body("<think>some 12</think>I say \\boxed{12}")

    chat_server.answer = solve
    code, out, _ = spade(
        "run",
        "StampDrawer",
        "--model",
        chat_server.url,
        "--episodes",
        5,
        "--to",
        "e.jsonl",
        "--json",
    )
    assert code == 0
    result = json.loads(out)["results"][0]
    assert result["episodes"] == 5 and result["faults"] == 0
    assert spade("replay", "e.jsonl")[1] == "5 of 5 episodes are the same bit for bit\n"


def test_run_plays_tools_through_a_server(
    chat_server: Any, chat_body: Any, spade: Callable[..., tuple[int, str, str]]
) -> None:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "answer", "arguments": '{"traveller": "pilot", "value": 3}'},
    }
    chat_server.answer = lambda _: (200, chat_body("", [call]))
    code, out, _ = spade(
        "run", "MapRoom", "--model", chat_server.url, "--episodes", 2, "--max-turns", 3
    )
    assert code == 0 and "spade/MapRoom-v0" in out
    second = chat_server.asked[-1]["messages"][1:]
    assert second[1]["tool_calls"][0]["id"] == "c1"
    assert second[2] == {"role": "tool", "tool_call_id": "c1", "content": "You tell the pilot: 3."}
