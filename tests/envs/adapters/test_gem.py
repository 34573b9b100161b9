"""GEM: its own `make`, vectors and classes, in both directions."""

from __future__ import annotations

import importlib.util
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from spade_envs import suite
from spade_runtime.errors import UsageError

needs_gem = pytest.mark.skipif(
    importlib.util.find_spec("gem") is None, reason="gem-llm is not installed"
)
GUESS = "game:GuessTheNumber-v0-easy"


@needs_gem
@pytest.mark.filterwarnings("default")
def test_ours_are_made_and_won_by_their_ids(solution_of: Callable[..., list[Any]]) -> None:
    import gem
    from gem.core import Env

    from spade_envs.adapters.gem import register

    assert register("spade/RollingDie-v0", "MapRoom") == ["spade/RollingDie-v0", "spade/MapRoom-v0"]
    env = gem.make("spade/RollingDie-v0")
    assert isinstance(env, Env)
    first, _ = env.reset(seed=7)
    assert first == env.reset(seed=7)[0] and first != env.reset(seed=8)[0]
    env.reset(seed=7)
    for action in solution_of("RollingDieEnv", 7):
        result = env.step(f"so \\boxed{{{action}}}")
    assert result[1:4] == (1.0, True, False) and result[4]["spade"]["solved"]
    env.close()
    desk = gem.make("spade/MapRoom-v0", hinted=True)
    first, info = desk.reset(seed=3)
    assert "<tools>" in first and "\n\nHint: " in first and info["spade"]["tools"]
    for message in solution_of("MapRoomEnv", 3):
        result = desk.step(message)
    assert result[1] == 1.0 and result[2]
    desk.close()


@needs_gem
@pytest.mark.filterwarnings("default")
def test_a_spawned_twin_stands_in_the_same_place(solution_of: Callable[..., list[Any]]) -> None:
    from spade_envs.adapters.gem import GemEnv

    env = GemEnv("RollingDie", seed=4)
    env.reset()
    *early, last = solution_of("RollingDieEnv", env._played[0])
    for action in early:
        env.step(action)
    twin, other = env.spawn(same_state=True), env.spawn()
    assert twin.step(last) == env.step(last)
    assert other.reset()[0] == GemEnv("RollingDie", seed=4).reset()[0]


@needs_gem
@pytest.mark.filterwarnings("default")
def test_gems_vector_steps_a_group() -> None:
    import gem

    from spade_envs.adapters.gem import register

    register("spade/StampDrawer-v0")
    vector = gem.make_vec(["spade/StampDrawer-v0"] * 3, seed=5)
    observations, _ = vector.reset()
    assert len(set(observations)) == 3
    following, rewards, terminated, _, infos = vector.step(["\\boxed{0}"] * 3)
    assert list(rewards) == [0.0] * 3 and all(terminated)
    # GEM's vector begins the next episode in the same step.
    assert len({*observations, *following}) == 6
    assert [info["spade"]["turn"] for info in infos] == [0] * 3


@needs_gem
@pytest.mark.filterwarnings("default")
def test_all_of_the_suite_and_of_a_pool_is_registered(tmp_path: Any, sandbox: Any) -> None:
    from gem.envs.registration import ENV_REGISTRY

    from spade_envs.adapters.gem import register
    from spade_envs.pool import Pool
    from spade_envs.pool_import import Importer

    assert set(register()) == {spec.id for spec in suite.specs().values()} <= set(ENV_REGISTRY)
    (tmp_path / "mine.py").write_text(
        suite.paths()["RollingDieEnv"].read_text().replace("RollingDieEnv", "OtherDieEnv")
    )
    pool = Pool(tmp_path / "pool", create=True)
    assert [one.status for one in Importer(pool, sandbox).folder(tmp_path)] == ["added"]
    (name,) = register(pool=tmp_path / "pool")
    assert name == "spade/OtherDie-v0"
    import gem

    assert "die" in gem.make(name).reset(seed=1)[0]


@needs_gem
@pytest.mark.filterwarnings("default")
def test_a_gem_class_runs_in_the_sandbox_from_its_file() -> None:
    import gymnasium

    import spade_envs
    from spade_envs.adapters.gem_sources import source_of

    spec = spade_envs.register(source_of(GUESS), profile="lenient")
    assert spec.dialect == "gem"
    env = gymnasium.make(spec.id)
    first, _ = env.reset(seed=3)
    assert first.startswith("You are playing Guess The Number.")
    assert first.endswith("Enter your next guess.")
    low, high = 1, 20
    for _ in range(6):
        guess = (low + high) // 2
        said, reward, terminated, _, info = env.step(f"\\boxed{{{guess}}}")
        if terminated:
            break
        low, high = (guess + 1, high) if "higher" in said else (low, guess - 1)
    assert terminated and reward == 1.0 and info["spade"]["solved"]
    env.close()
    spade_envs.unregister(spec.id)


@needs_gem
@pytest.mark.filterwarnings("default")
def test_a_gem_environment_plays_in_this_process_with_its_settings() -> None:
    from spade_envs.adapters.gem_sources import FromGem

    env = FromGem(GUESS, config={"max_number": 3, "max_turns": 5})
    first, info = env.reset(seed=1)
    assert "between 1 and 3" in first and info["spade"]["turn"] == 0
    assert env.manifest.max_turns == 5 and env.manifest.dialect == "gem"
    won = [env.step(f"\\boxed{{{guess}}}") for guess in (1, 2, 3) if env.session.running(0)]
    assert won[-1][1] == 1.0 and won[-1][4]["spade"]["solved"]
    again = pickle.loads(pickle.dumps(env))
    assert again.reset(seed=1)[0] == first
    env.reset(seed=2)
    assert env.step("no box")[1] == pytest.approx(-0.1)


@needs_gem
def test_unknown_names_are_refused() -> None:
    from spade_envs.adapters.gem import GemEnv
    from spade_envs.adapters.gem_sources import FromGem, source_of

    with pytest.raises(UsageError, match="did you mean 'spade/RollingDie-v0'"):
        GemEnv("spade/RolingDie-v0")
    with pytest.raises(UsageError, match=f"did you mean '{GUESS}'"):
        FromGem("game:GuesTheNumber-v0-easy")
    with pytest.raises(UsageError, match="GEM has no environment"):
        source_of("nothing")
