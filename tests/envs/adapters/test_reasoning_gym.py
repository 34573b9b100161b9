"""reasoning-gym: its own data sets and scorers, one message each."""

from __future__ import annotations

import importlib.util
import pickle

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from spade_envs.adapters import reasoning_gym as adapter
from spade_runtime.errors import UsageError

HERE = importlib.util.find_spec("reasoning_gym") is not None
needs_reasoning_gym = pytest.mark.skipif(not HERE, reason="the extra eval is not installed")
SOME = ["basic_arithmetic", "chain_sum", "countdown", "leg_counting", "maze", "sudoku"]


@needs_reasoning_gym
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", SOME)
def test_a_seed_is_a_task_and_its_answer_solves_it(name: str) -> None:
    env = adapter.ReasoningGymEnv(name)
    first, info = env.reset(seed=7)
    assert info["spade"] == {"turn": 0, "solved": False, "fault": None}
    assert env.reset(seed=8)[0] != first == env.reset(seed=7)[0]
    answers = env.session.solution()[0]
    assert answers is not None and len(answers) == 1
    said, reward, terminated, truncated, info = env.step(f"I think \\boxed{{{answers[0]}}}")
    assert (reward, terminated, truncated) == (1.0, True, False), said
    assert info["spade"]["solved"] and info["spade"]["action"] == answers[0].strip()
    env.reset(seed=7)
    _, reward, terminated, _, info = env.step("\\boxed{no answer at all}")
    assert terminated and reward < 1.0 and not info["spade"]["solved"]
    env.close()


@needs_reasoning_gym
@pytest.mark.filterwarnings("default")
def test_registered_data_sets_are_made_by_gymnasium() -> None:
    ids = adapter.register("leg_counting", "chain_sum", config={})
    assert ids == ["reasoning_gym/leg_counting-v0", "reasoning_gym/chain_sum-v0"]
    assert adapter.register("leg_counting") == ids[:1]
    env = gymnasium.make(ids[0])
    check_env(env.unwrapped, skip_render_check=True)
    assert pickle.loads(pickle.dumps(env.spec)) == env.spec
    vector = gymnasium.make_vec(ids[1], num_envs=3, vectorization_mode="sync")
    observations, _ = vector.reset(seed=[1, 2, 1])
    assert observations[0] == observations[2] != observations[1]
    _, rewards, terminated, _, _ = vector.step(("0.5", "0.5", "0.5"))
    assert all(terminated) and all(rewards < 1)
    vector.close()


@needs_reasoning_gym
@pytest.mark.filterwarnings("default")
def test_settings_reach_the_data_set_and_survive_pickle() -> None:
    env = adapter.ReasoningGymEnv("chain_sum", config={"min_terms": 6, "max_terms": 6})
    first, _ = env.reset(seed=1, options={"hint": "Add."})
    assert first.count("+") + first.count(" - ") >= 5 and first.endswith("\n\nHint: Add.")
    again = pickle.loads(pickle.dumps(env))
    assert again.reset(seed=1, options={"hint": "Add."})[0] == first


@needs_reasoning_gym
@pytest.mark.filterwarnings("default")
def test_what_a_scorer_can_not_read_is_wrong_and_no_fault() -> None:
    for name in SOME:
        env = adapter.ReasoningGymEnv(name)
        for text in ("", "{", "((((", "1/0", "\x00", "9" * 5000):
            env.reset(seed=3)
            _, reward, terminated, _, info = env.step(text)
            assert terminated and reward < 1.0 and info["spade"]["fault"] is None, (name, text)


@needs_reasoning_gym
@pytest.mark.filterwarnings("default")
def test_unknown_names_and_settings_are_refused() -> None:
    with pytest.raises(UsageError, match="did you mean 'leg_counting'"):
        adapter.ReasoningGymEnv("leg_countin")
    with pytest.raises(UsageError, match="the seed of a reset decides seed"):
        adapter.ReasoningGymEnv("leg_counting", config={"seed": 3})
    with pytest.raises(UsageError, match="leg_counting does not take"):
        adapter.ReasoningGymEnv("leg_counting", config={"legs": 3})
