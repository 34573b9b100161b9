import numpy as np
import pytest

from spade_train.advantages import (
    agent_advantages,
    designer_advantages,
    group_advantages,
    is_equal,
)


def test_golden(golden):
    for case in golden["group_advantages"]:
        assert group_advantages(case["rewards"]).tolist() == pytest.approx(
            case["expected"], abs=1e-5
        )


def test_all_equal_gives_exact_zeros():
    # The mean of three 0.1 is not 0.1 in floating point; an epsilon alone would let that through.
    assert not group_advantages([0.1, 0.1, 0.1]).any()
    assert is_equal([0.1, 0.1, 0.1])
    assert not is_equal([0.0, 1.0])


def test_void_plays_have_no_advantage_and_do_not_count():
    advantages = agent_advantages([1.0, None, 0.0, 0.0, 0.0])
    assert advantages[1] is None
    counted = [value for value in advantages if value is not None]
    assert counted == pytest.approx(group_advantages([1.0, 0.0, 0.0, 0.0]).tolist())


@pytest.mark.parametrize("returns", [[], [1.0], [1.0, None], [None, None]])
def test_fewer_than_two_plays_give_none(returns):
    assert agent_advantages(returns) == [None] * len(returns)


def test_designer_advantages_are_centred_by_skill_and_scaled():
    advantages = designer_advantages([1.0, 0.5, 0.2], ["a", "a", "b"], scale=32.0)
    assert advantages.tolist() == pytest.approx([8.0, -8.0, 0.0])
    with pytest.raises(ValueError, match="2 rewards for 1 skills"):
        designer_advantages([1.0, 0.5], ["a"], scale=1.0)


def test_advantages_of_a_group_add_up_to_nothing():
    generator = np.random.default_rng(5)
    for _ in range(20):
        assert group_advantages(generator.random(16)).sum() == pytest.approx(0.0, abs=1e-9)
