"""What a run may go on with: its own configuration, more steps, and things in other places."""

import pytest

from spade_runtime.errors import ConfigError
from spade_train.ledger import Ledger
from spade_train.memory import Memory
from spade_train.objectives import make_objective
from spade_train.presets import resolve
from spade_train.resumption import place_to_go_on
from spade_train.state import Checkpoints, RunState


def tiny(**words):
    values = {"steps": 4, **words}
    return resolve("tiny", overrides=[f"{key}={value}" for key, value in values.items()])


@pytest.fixture
def saved(tmp_path):
    """Saves checkpoints of steps of a run; the last one may be after its flush."""

    def save(*steps, flushed=False, config=None):
        checkpoints = Checkpoints(tmp_path / "checkpoints")
        for step in steps:
            state = RunState(
                Memory(),
                make_objective("blend"),
                Ledger(),
                step=step,
                flushed=flushed and step == steps[-1],
                config={} if config is None else config.model_dump(mode="json"),
            )
            state = state.to_state()
            if config is None:
                del state["config"], state["failed_updates"]
            checkpoints.save(step, state, {}, lambda folder: None)
        return checkpoints

    return save


def step_of(found):
    return found[1]["state"]["step"]


def test_an_edited_configuration_is_refused_with_every_key_that_differs(saved):
    checkpoints = saved(1, 2, config=tiny())
    assert step_of(place_to_go_on(checkpoints, tiny())) == 2
    with pytest.raises(ConfigError) as caught:
        place_to_go_on(checkpoints, tiny(seed=5, learning_rate=0.5))
    rate = tiny().learning_rate
    assert f"learning_rate was {rate} and is 0.5; seed was 0 and is 5." in str(caught.value)
    assert "begin a new run" in str(caught.value)


def test_where_things_lie_and_how_they_are_done_may_change(saved):
    checkpoints = saved(2, config=tiny(designer_url="http://a/v1", designer_model="m",
                                       ablation="external_designer"))  # fmt: skip
    now = tiny(
        designer_url="http://b/v1", designer_model="m", ablation="external_designer",
        run_dir="elsewhere", workers=7, checkpoint_every=2, isolation="none",
    )  # fmt: skip
    assert step_of(place_to_go_on(checkpoints, now)) == 2


@pytest.mark.parametrize("known", [True, False])
def test_a_run_that_has_ended_goes_on_from_before_its_last_step(saved, known):
    """Also where an earlier version wrote the checkpoints, without the configuration."""
    checkpoints = saved(3, 4, flushed=True, config=tiny() if known else None)
    assert step_of(place_to_go_on(checkpoints, tiny())) == 4
    assert step_of(place_to_go_on(checkpoints, tiny(steps=9))) == 3


def test_the_number_of_steps_may_change_as_long_as_none_is_done_that_it_changes(saved):
    checkpoints = saved(1, 2, config=tiny())
    assert step_of(place_to_go_on(checkpoints, tiny(steps=3))) == 2
    assert step_of(place_to_go_on(checkpoints, tiny(steps=9))) == 2
    with pytest.raises(ConfigError, match="done 2 of its 4 steps: put steps=4 back"):
        place_to_go_on(checkpoints, tiny(steps=2))


def test_without_an_earlier_checkpoint_an_ended_run_can_not_be_made_longer(saved):
    checkpoints = saved(4, flushed=True, config=tiny())
    with pytest.raises(ConfigError, match="no checkpoint from before its last step is left"):
        place_to_go_on(checkpoints, tiny(steps=5))


def test_the_count_of_thrown_updates_outlives_a_stop(saved):
    from spade_train.divergence import PATIENCE, heed_thrown_updates
    from spade_train.errors import Diverged

    state = RunState(Memory(), make_objective("blend"), Ledger())
    told = []
    thrown = {"guards/skipped_updates_agent": 2}
    for step in range(PATIENCE - 1):
        heed_thrown_updates(state, thrown, step, told.append)
    assert told == [
        "the update of step 0 had no finite gradient and was thrown away; 10 in a row end the run"
    ]
    again = RunState(Memory(), make_objective("blend"), Ledger())
    again.restore(state.to_state())
    heed_thrown_updates(again, {}, 9, told.append)  # nothing was trained, which says nothing
    with pytest.raises(Diverged, match="10 updates in a row.*begin a new run"):
        heed_thrown_updates(again, thrown, 10, told.append)
    heed_thrown_updates(state, {"guards/skipped_updates_agent": 0}, 9, told.append)
    assert state.failed_updates == 0
