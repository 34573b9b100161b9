import copy
import pickle
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import spade_envs
from spade_envs import suite
from spade_envs.arguments import HINT_MAX
from spade_envs.env import SpadeEnv, printable
from spade_envs.shared import close_shared_pools, shared_pool
from spade_runtime.errors import EnvRaised, EpisodeOver, InvalidEnvironment, UsageError

ECHO = '''
class EchoEnv(TextEnv):
    """Echo."""

    skill = "memory_recall"
    max_turns = 3

    def reset(self, seed=None):
        if seed == 13:
            raise ValueError("unlucky")
        return f"task {seed}", {"seed": seed, "list": [1]}

    def step(self, action):
        if action == "bad":
            return 3
        return "you said: " + action + chr(27), 0.5, action == "end", False, {}
'''


@pytest.fixture
def echo():
    env = SpadeEnv(ECHO, render_mode="ansi")
    yield env
    env.close()


@pytest.mark.parametrize("name", suite.names())
def test_gymnasiums_own_checker_finds_nothing_in_the_suite(name):
    env = gymnasium.make(spade_envs.registration.suite_id(name))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    env.close()


def test_seeds_determine_tasks_and_tasks_follow_from_a_seed(echo):
    assert echo.reset(seed=7)[0] == "task 7"
    following = [echo.reset()[0] for _ in range(3)]
    assert len(set(following)) == 3
    echo.reset(seed=7)
    assert [echo.reset()[0] for _ in range(3)] == following
    other = SpadeEnv(ECHO)
    assert other.reset()[0] != SpadeEnv(ECHO).reset()[0]
    other.close()


def test_an_episode_and_its_end(echo):
    first, info = echo.reset(seed=1)
    assert first in echo.observation_space
    again = echo.reset(seed=1)[1]
    assert info == again
    assert info is not again
    assert info["list"] is not again["list"]
    assert info["spade"] is not again["spade"]
    result = echo.step("one")
    assert result[1:4] == (0.5, False, False)
    assert [type(value) for value in result] == [str, float, bool, bool, dict]
    echo.step("two")
    assert echo.step("three")[2:4] == (False, True)
    with pytest.raises(EpisodeOver, match="call reset first"):
        echo.step("four")
    echo.reset(seed=1)
    assert echo.step("end")[2:4] == (True, False)
    with pytest.raises(EpisodeOver):
        echo.step("more")


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (None, "task 1"),
        ({}, "task 1"),
        ({"hint": None}, "task 1"),
        ({"hint": "look up"}, "task 1\n\nHint: look up"),
    ],
)
def test_a_hint_is_the_last_block_of_the_first_observation(echo, options, wanted):
    assert echo.reset(seed=1, options=options)[0] == wanted


def test_the_hint_that_comes_with_an_environment(tmp_path):
    env = gymnasium.make("spade/CoinBalance-v0")
    plain = env.reset(seed=1)[0]
    hint = suite.specs()["CoinBalanceEnv"].hint
    assert env.reset(seed=1, options={"hint": True})[0] == f"{plain}\n\nHint: {hint}"
    env.close()
    (tmp_path / "echo.py").write_text(ECHO)
    beside = SpadeEnv(path=str(tmp_path / "echo.py"))
    for nothing in (None, "", " \n"):
        if nothing is not None:
            (tmp_path / "echo.hint.txt").write_text(nothing)
        with pytest.raises(UsageError, match="there is none in its manifest or beside its file"):
            beside.reset(seed=1, options={"hint": True})
    (tmp_path / "echo.hint.txt").write_text("Say it back.\n")
    assert beside.reset(seed=1, options={"hint": True})[0] == "task 1\n\nHint: Say it back."
    beside.close()


def test_numpys_integers_are_seeds(echo):
    assert echo.reset(seed=np.int64(7))[0] == "task 7"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda env: env.reset(seed=-1), "a seed is an integer"),
        (lambda env: env.reset(seed=2**31), "a seed is an integer"),
        (lambda env: env.reset(options={"hint": 3}), "a text or True, not 3"),
        (lambda env: env.reset(options={"hint": True}), "there is none"),
        (lambda env: env.reset(options={"hint": ""}), "the hint is blank"),
        (lambda env: env.reset(options={"hint": " \n"}), "the hint is blank"),
        (lambda env: env.reset(options={"hnt": "x"}), "no option 'hnt'; did you mean 'hint'?"),
        (lambda env: env.reset(options={"seed": 1}), "'seed'; there are hint and max_turns"),
        (lambda env: env.reset(options="hint"), "options is a dictionary or None, not 'hint'"),
        (lambda env: env.reset(seed="a"), "a seed is an integer from 0 to 2147483647, not 'a'"),
        (lambda env: env.reset(seed=1.0), "a seed is an integer"),
        (lambda env: env.reset(seed=True), "a seed is an integer"),
        (lambda env: env.reset(options={"max_turns": 0}), "whole number of at least 1, not 0"),
        (lambda env: env.reset(options={"max_turns": 2.5}), "at least 1, not 2.5"),
        (lambda env: env.reset(options={"max_turns": True}), "at least 1, not True"),
        (lambda env: env.reset(options={"max_turns": "x"}), "at least 1, not 'x'"),
        (lambda env: SpadeEnv(ECHO, max_turns=2.5), "at least 1, not 2.5"),
        (lambda env: SpadeEnv(ECHO, max_turns=True), "at least 1, not True"),
        (lambda env: SpadeEnv(ECHO, max_turns="3"), "at least 1, not '3'"),
        (lambda env: SpadeEnv(ECHO, max_turns=0), "at least 1, not 0"),
        (lambda env: env.reset(options={"hint": "a\ud800"}), "a lone surrogate at character 1"),
        (lambda env: env.reset(options={"hint": "a" * (HINT_MAX + 1)}), "at most 262,144 char"),
        (lambda env: env.step(3), "a message is text"),
        (lambda env: env.step("\ud800"), "lone surrogate"),
        (lambda env: SpadeEnv(ECHO, render_mode="human"), "render_mode is None or 'ansi'"),
    ],
)
def test_a_callers_mistake_is_told(echo, call, message):
    echo.reset(seed=1)
    with pytest.raises(UsageError, match=message):
        call(echo)
    assert echo.reset(seed=2)[0] == "task 2"


@pytest.mark.parametrize("level", ["STRICT", "foo", None, 5, ["strict"]])
def test_a_level_that_is_none_is_refused_where_it_is_named(level):
    for make in (
        lambda: SpadeEnv(ECHO, level=level),
        lambda: gymnasium.make("spade/RollingDie-v0", level=level),
        lambda: shared_pool(level),
    ):
        with pytest.raises(UsageError, match="'strict', 'best_effort' or 'none', not "):
            make()


def test_the_longest_hint_is_within_the_space(echo):
    assert echo.reset(seed=1, options={"hint": "a" * HINT_MAX})[0] in echo.observation_space


def test_what_is_refused_changes_nothing(echo):
    echo.reset(seed=7)
    following = [echo.reset()[0] for _ in range(2)]
    echo.reset(seed=7)
    assert echo.reset()[0] == following[0]
    for options in ({"hint": 3}, {"max_turns": 0}, {"other": 1}):
        with pytest.raises(UsageError):
            echo.reset(seed=1, options=options)
        with pytest.raises(UsageError):
            echo.reset(options=options)
    assert echo.step("still there")[0] == "you said: still there\x1b"
    assert echo.reset()[0] == following[1]


@pytest.mark.parametrize("mode", [None, "ansi"])
def test_calls_nested_beyond_reason_are_an_error_to_the_agent(mode):
    env = SpadeEnv("suite:MapRoomEnv", render_mode=mode)
    env.reset(seed=1)
    deep = []
    for _ in range(5000):
        deep = [deep]
    observation, _, terminated, truncated, _ = env.step([{"name": "look", "arguments": deep}])
    assert "nested too deep" in observation and not terminated and not truncated
    assert mode is None or "> (nested too deep to show)" in env.render()
    env.close()


def test_the_runs_limit_and_the_episodes(echo):
    echo.reset(seed=1, options={"max_turns": 1})
    assert echo.step("x")[3] is True
    limited = gymnasium.make("spade/RollingDie-v0", max_turns=2)
    limited.reset(seed=1)
    assert [limited.step("hm")[3] for _ in range(2)] == [False, True]
    limited.close()


def test_a_fault_raises_at_reset_and_truncates_at_step(echo):
    with pytest.raises(EnvRaised, match="unlucky"):
        echo.reset(seed=13)
    echo.reset(seed=1)
    observation, reward, terminated, truncated, info = echo.step("bad")
    assert (observation, reward, terminated, truncated) == ("", 0.0, False, True)
    assert info["spade"]["fault"]["code"] == "SPD402"
    assert "[fault SPD402]" in echo.render()
    assert echo.reset(seed=2)[0] == "task 2"


def test_what_is_shown_can_be_printed(echo):
    echo.reset(seed=1)
    assert echo.render() == "task 1"
    echo.step("a\x1b[2J")
    assert echo.render() == "[1] > a\\x1b[2J\nyou said: a\\x1b[2J\\x1b"
    silent = SpadeEnv(ECHO)
    silent.reset(seed=1)
    assert silent.render() is None
    silent.close()
    assert printable("ä\n\t\x00\u202e") == "ä\n\t\\x00\\u202e"


def test_closing_twice_and_starting_again(echo):
    echo.reset(seed=1)
    echo.close()
    echo.close()
    assert echo.reset(seed=1)[0] == "task 1"


def test_an_environment_is_copied_and_pickled_without_its_child(echo):
    echo.reset(seed=1)
    for twin in (copy.deepcopy(echo), pickle.loads(pickle.dumps(echo))):
        assert twin.reset(seed=5)[0] == "task 5"
        twin.close()


def test_a_source_that_is_refused():
    env = SpadeEnv("import socket\n\n\nclass NetEnv(TextEnv):\n    x = socket\n")
    with pytest.raises(InvalidEnvironment, match="SPD101"):
        env.reset(seed=1)


def test_tools_come_with_the_first_info_and_take_structured_calls():
    env = gymnasium.make("spade/HerbariumSearch-v0")
    _, info = env.reset(seed=3)
    names = [tool["function"]["name"] for tool in info["spade"]["tools"]]
    assert len(names) >= 2
    steps = env.unwrapped.session.solution()[0]
    for calls in steps:
        _, reward, terminated, _, info = env.step(calls)
    assert (reward, terminated) == (1.0, True)
    assert info["spade"]["credit"] == 1.0
    assert env.unwrapped.manifest.kind == "tool_use"
    env.close()


def test_environments_of_a_process_share_one_sandbox(echo):
    before = shared_pool().stats()
    twin = SpadeEnv(ECHO)
    echo.reset(seed=1)
    twin.reset(seed=1)
    after = shared_pool().stats()
    assert after["opened"] == before["opened"] + 2
    assert after["zygotes"] == before["zygotes"]
    twin.close()


def test_the_shared_sandbox_starts_again_after_it_was_closed(echo):
    close_shared_pools()
    close_shared_pools()
    assert echo.reset(seed=4)[0] == "task 4"
