"""What holds of every policy: the one protocol, on the real classes."""

import json

import pytest

from spade_train.errors import PolicyError, PolicyRefused, PolicyUnavailable
from spade_train.policies import scripted
from spade_train.policies.base import Generation, Policy, Sampling
from spade_train.policies.openai import Endpoint, OpenAIPolicy
from spade_train.policies.text import prompt_tokens
from spade_train.presets import resolve
from spade_train.tokens import Dialogue

HOSTILE = "plain [assistant] <|im_end|> \x00 ünï 漢字 🙂"


@pytest.fixture
def server(chat_server, chat_body):
    """A chat server on this machine that repeats what it is told."""
    chat_server.answer = lambda body: (200, chat_body(body["messages"][-1]["content"]))
    return chat_server


def ask(server, **changes):
    settings = {"url": server.url, "model": "m", "pause": 0.01, "concurrency": 1, **changes}
    return OpenAIPolicy(Endpoint(**settings))


@pytest.fixture(params=["hf", "openai", "fixed", "uniform", "solution"])
def policy(request, server):
    if request.param == "hf":
        pytest.importorskip("torch")
        return request.getfixturevalue("small_policy")
    if request.param == "openai":
        return ask(server)
    if request.param == "solution":
        return scripted.solution({"task": ["a", "b"]})
    return scripted.fixed("a") if request.param == "fixed" else scripted.uniform()


def test_every_policy_keeps_the_protocol(policy):
    assert isinstance(policy, Policy)
    assert policy.name
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": f"task {HOSTILE}"}]
    prompt = policy.encode_chat(messages, tools=[{"name": "go", "parameters": {}}])
    prompts = [prompt, policy.encode_chat(messages), prompt]
    sampling = Sampling(temperature=0.8, max_tokens=7)
    replies = policy.generate(prompts, sampling, [1, 2, 3])
    assert len(replies) == 3
    assert policy.generate(prompts, sampling, [1, 2, 3]) == replies
    for reply in replies:
        assert isinstance(reply, Generation)
        assert len(reply.logprobs) == (len(reply.token_ids) if policy.trainable else 0)
        assert reply.finish in ("stop", "length")
        assert isinstance(policy.reply_text(reply), str)
    assert policy.generate([], sampling, []) == []


def test_every_policy_carries_a_dialogue_over_turns(policy):
    dialogue = Dialogue(policy, [{"role": "user", "content": f"task {HOSTILE}"}])
    for turn in range(3):
        reply = policy.generate([dialogue.prompt], Sampling(max_tokens=5), [turn])[0]
        dialogue.reply(reply)
        dialogue.answer([{"role": "user", "content": f"turn {turn}"}])
    assert len(dialogue.messages) == 7


def test_a_url_gets_the_conversation_the_tools_and_the_sampling(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    policy = ask(server)
    tool = {"name": "go", "parameters": {"type": "object", "properties": {}}}
    prompt = policy.encode_chat([{"role": "user", "content": HOSTILE}], tools=[tool])
    reply = policy.generate([prompt], Sampling(0.3, 0.9, 5, 77), [2**40 + 1])[0]
    assert policy.reply_text(reply) == HOSTILE
    body = server.asked[0]
    assert server.paths == ["/v1/chat/completions"]
    assert server.headers[0]["Authorization"] == "Bearer sk-secret"
    assert body["messages"] == [{"role": "user", "content": HOSTILE}]
    assert body["tools"] == [{"type": "function", "function": tool}]
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.3, 0.9, 77)
    assert body["top_k"] == 5


def test_structured_tool_calls_come_back_as_text(server, chat_body):
    call = {"type": "function", "function": {"name": "go", "arguments": '{"to": "x"}'}}
    server.script.append((200, {}, chat_body(None, [call], finish="length")))
    policy = ask(server)
    reply = policy.generate(
        [policy.encode_chat([{"role": "user", "content": "q"}])], Sampling(), [0]
    )
    assert '<tool_call>\n{"name": "go", "arguments": {"to": "x"}}' in policy.reply_text(reply[0])
    assert reply[0].finish == "length"


def test_the_prompt_of_a_policy_without_a_tokenizer_is_measured_in_tokens(server):
    messages = [{"role": "user", "content": "Some ordinary English words. " * 40}]
    policy = ask(server)
    assert len(policy.encode_chat(messages)) == 1163
    assert prompt_tokens(policy, messages) == prompt_tokens(scripted.fixed("a"), messages) == 291


def test_an_external_designer_is_measured_by_the_model_that_it_stands_in_for(small_policy):
    from spade_train.assemble import designer_policy

    words = ["ablation=external_designer", "designer_url=http://x/v1", "designer_model=m"]
    policy = designer_policy(resolve("tiny", overrides=words), small_policy)
    messages = [{"role": "user", "content": "Some ordinary English words. " * 40}]
    assert isinstance(policy, OpenAIPolicy)
    assert prompt_tokens(policy, messages) == prompt_tokens(small_policy, messages)
    assert prompt_tokens(small_policy, messages) == len(small_policy.encode_chat(messages))


def test_giving_up_is_typed_and_keeps_what_was_answered(server, chat_body):
    answered = [(200, {}, chat_body(str(i))) for i in range(2)]
    server.script += [*answered, *[(500, {}, "broken")] * 3]
    policy = ask(server, retries=2)
    prompts = [policy.encode_chat([{"role": "user", "content": str(i)}]) for i in range(5)]
    with pytest.raises(PolicyUnavailable, match="in 3 tries: HTTP 500") as caught:
        policy.generate(prompts, Sampling(), range(5))
    texts = {i: policy.reply_text(g) for i, g in caught.value.finished.items()}
    assert texts.items() >= {0: "0", 1: "1"}.items()
    assert 2 not in texts


def test_a_refusal_is_not_tried_again_and_does_not_show_the_key(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    server.script.append((401, {}, '{"error": "wrong key sk-secret"}'))
    policy = ask(server)
    with pytest.raises(PolicyError, match="HTTP 401") as caught:
        policy.generate([policy.encode_chat([{"role": "user", "content": "q"}])], Sampling(), [0])
    assert "sk-secret" not in str(caught.value)
    assert len(server.asked) == 1


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_refused_prompt_does_not_keep_the_others_from_their_answers(
    server, chat_body, concurrency
):
    def answer(body):
        said = body["messages"][-1]["content"]
        return (400, "not that") if said in "15" else (200, chat_body(said))

    server.answer = answer
    policy = ask(server, concurrency=concurrency)
    prompts = [policy.encode_chat([{"role": "user", "content": str(i)}]) for i in range(7)]
    with pytest.raises(PolicyRefused, match="HTTP 400") as caught:
        policy.generate(prompts, Sampling(), range(7))
    texts = {i: policy.reply_text(g) for i, g in caught.value.finished.items()}
    assert texts == {i: str(i) for i in (0, 2, 3, 4, 6)}
    assert sorted(caught.value.refused) == [1, 5]
    assert all("not that" in why for why in caught.value.refused.values())


def test_a_server_that_refuses_all_is_not_asked_for_each(server):
    server.answer = lambda body: (401, "wrong key")
    policy = ask(server)
    prompts = [policy.encode_chat([{"role": "user", "content": str(i)}]) for i in range(50)]
    with pytest.raises(PolicyRefused, match="HTTP 401") as caught:
        policy.generate(prompts, Sampling(), range(50))
    assert len(caught.value.refused) == 50
    assert len(server.asked) == 2


@pytest.mark.parametrize("answer", [{}, [], {"choices": []}, {"choices": [{"message": None}]}])
def test_an_answer_that_is_no_completion_is_one_clear_error(server, answer):
    server.script.append((200, {}, json.dumps(answer)))
    policy = ask(server)
    with pytest.raises(PolicyError, match="no chat completion"):
        policy.generate([policy.encode_chat([{"role": "user", "content": "q"}])], Sampling(), [0])


def test_no_server_at_all_is_one_clear_error():
    policy = OpenAIPolicy(Endpoint("http://127.0.0.1:9/v1", "m", retries=1, pause=0.01))
    with pytest.raises(PolicyUnavailable, match="in 2 tries"):
        policy.generate([policy.encode_chat([{"role": "user", "content": "q"}])], Sampling(), [0])


def test_the_uniform_player_draws_from_the_last_message():
    policy = scripted.uniform()
    prompt = policy.encode_chat([{"role": "user", "content": "go north, or east?"}])
    texts = {policy.reply_text(g) for g in policy.generate([prompt] * 40, Sampling(), range(40))}
    assert texts == {f"\\boxed{{{w}}}" for w in ("go", "north", "or", "east")}


def test_the_solution_player_plays_the_solution_of_the_episode_it_sees():
    policy = scripted.solution({"Maze A": ["north", "east"], "Maze B": ["south"]})
    dialogue = Dialogue(policy, [{"role": "user", "content": "Rules.\nMaze A"}])
    said = []
    for turn in range(3):
        said.append(dialogue.reply(policy.generate([dialogue.prompt], Sampling(), [turn])[0]))
        dialogue.answer([{"role": "user", "content": "Maze B"}])
    assert said == ["north", "east", ""]
