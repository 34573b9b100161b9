import json
import pickle

import gymnasium
import pytest

import spade_envs  # noqa: F401  registers the suite
from spade_envs import suite
from spade_envs.wrappers import HintWrapper, MessageWrapper, TranscriptWrapper, message_prompt
from spade_runtime.errors import UsageError

GAME, DESK = "spade/RollingDie-v0", "spade/HerbariumSearch-v0"


@pytest.fixture
def made():
    envs = []

    def make(name):
        envs.append(gymnasium.make(name))
        return envs[-1]

    yield make
    for env in envs:
        env.close()


def test_a_hint_at_every_reset_unless_another_comes(made):
    env = HintWrapper(made(GAME), "Roll.")
    plain = made(GAME).reset(seed=1)[0]
    assert env.reset(seed=1)[0] == f"{plain}\n\nHint: Roll."
    assert env.reset(seed=1, options={"hint": "Stop."})[0] == f"{plain}\n\nHint: Stop."
    assert env.reset(seed=1, options={"hint": None})[0] == plain
    own = HintWrapper(made(GAME), True).reset(seed=1)[0]
    assert own == f"{plain}\n\nHint: {suite.specs()['RollingDieEnv'].hint}"
    with pytest.raises(UsageError, match="a text or True"):
        HintWrapper(made(GAME), 3)
    with pytest.raises(UsageError, match="the hint is blank"):
        HintWrapper(made(GAME), "")


def test_a_transcript_grows_and_starts_anew(made):
    env = TranscriptWrapper(made(GAME))
    first, _ = env.reset(seed=1)
    second = env.step("north")[0]
    third = env.step("south")[0]
    assert third.startswith(f"{second}\n\n> south\n\n")
    assert second.startswith(f"{first}\n\n> north\n\n")
    assert third in env.observation_space
    assert [m["content"] for m in env.messages][::2][0] == first
    assert [m["role"] for m in env.messages] == ["user", "assistant"] * 2 + ["user"]
    assert env.reset(seed=1)[0] == first
    assert len(env.messages) == 1


def test_a_transcript_keeps_structured_calls(made):
    env = TranscriptWrapper(made(DESK))
    env.reset(seed=1)
    env.step([{"name": "nothing", "arguments": {}}])
    assert env.messages[1]["tool_calls"] == [{"name": "nothing", "arguments": {}}]
    message = {"role": "assistant", "content": "none"}
    env.step(message)
    assert env.messages[3] == message


def test_tools_are_told_as_text(made):
    env = MessageWrapper(made(DESK))
    observation, info = env.reset(seed=1, options={"hint": "Look."})
    before, _, after = observation.partition("</tools>")
    lines = before.partition("<tools>\n")[2].strip().split("\n")
    assert [json.loads(line) for line in lines] == info["spade"]["tools"]
    assert after.endswith("\n\nHint: Look.")
    name = info["spade"]["tools"][0]["function"]["name"]
    observation = env.step(f'<tool_call>{{"name": "{name}"}}</tool_call>')[0]
    assert "unknown tool" not in observation
    assert "\\boxed" in MessageWrapper(made(GAME)).reset(seed=1)[0]
    assert message_prompt([]) == message_prompt(None)


def test_structured_calls_come_as_they_are_or_as_json(made):
    env = MessageWrapper(made(DESK), calls="structured")
    plain = made(DESK)
    assert env.reset(seed=1)[0] == plain.reset(seed=1)[0]
    calls = [{"name": "nothing", "arguments": {}}]
    wanted = plain.step(calls)[0]
    assert "unknown tool" in wanted
    assert env.step(calls)[0] == wanted
    assert env.step(json.dumps(calls))[0] == wanted
    openai = {"role": "assistant", "content": "", "tool_calls": calls}
    assert env.step(json.dumps(openai))[0] == wanted
    assert env.step("just words")[0] == plain.step("just words")[0]
    with pytest.raises(UsageError, match="'text' or 'structured'"):
        MessageWrapper(made(DESK), calls="other")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: HintWrapper(env, "Roll."),
        TranscriptWrapper,
        lambda env: MessageWrapper(env, calls="structured"),
        lambda env: TranscriptWrapper(MessageWrapper(HintWrapper(env, "Roll."))),
    ],
)
def test_a_wrapped_environment_is_made_again_from_its_specification(made, wrap):
    env = wrap(made(DESK))
    wanted = env.reset(seed=2)[0]
    for spec in (
        type(env.spec).from_json(env.spec.to_json()),
        pickle.loads(pickle.dumps(env.spec)),
    ):
        again = gymnasium.make(spec)
        assert type(again) is type(env)
        assert again.reset(seed=2)[0] == wanted
        again.close()
