import numpy as np
import pytest

from spade_train.loss import (
    aggregate,
    clipped_surrogate_loss,
    is_clipped,
    kl_k3,
    token_losses,
    truncated_importance_weight,
)


def test_importance_weight_golden(golden):
    for case in golden["truncated_importance_weight"]:
        weight = truncated_importance_weight(
            case["train_logp"], case["rollout_logp"], low=case["low"], high=case["high"]
        )
        assert weight == pytest.approx(case["expected"], abs=1e-5)


def test_importance_weight_of_a_huge_gap_does_not_overflow():
    assert truncated_importance_weight([0.0, -2000.0], [-2000.0, 0.0]).tolist() == pytest.approx(
        [2.0, 0.0]
    )


def test_surrogate_golden(golden):
    for case in golden["clipped_surrogate_loss"]:
        loss = clipped_surrogate_loss(
            case["ratio"], case["advantage"], eps_low=case["eps_low"], eps_high=case["eps_high"]
        )
        assert loss == pytest.approx(case["expected"], abs=1e-5)


def test_k3_golden(golden):
    for case in golden["kl_k3"]:
        assert kl_k3(case["logp"], case["ref_logp"]) == pytest.approx(case["expected"], abs=1e-5)


def test_clip_binds_only_against_the_advantage():
    ratios, advantages = [1.5, 1.5, 0.5, 0.5, 1.1], [1.0, -1.0, 1.0, -1.0, 1.0]
    assert is_clipped(ratios, advantages).tolist() == [True, False, False, True, False]


def test_on_policy_loss_is_minus_the_advantage():
    logp = np.log([0.2, 0.5, 0.9])
    losses = token_losses(logp, logp, logp, 0.7)
    assert losses.tolist() == pytest.approx([-0.7] * 3)


def test_token_loss_by_hand():
    # weight min(e^1.2, 2) = 2, ratio e^0.5 clipped at 1.28, k3(-0.5 - 0) = e^0.5 - 1.5
    losses = token_losses(
        [-0.5], [-1.0], [-2.2], 1.0, logp_ref=[0.0], kl_coefficient=0.1, weight_max=2.0
    )
    assert losses.tolist() == pytest.approx([2 * -1.28 + 0.1 * (np.exp(0.5) - 1.5)])


def test_samples_weigh_alike_whatever_their_length():
    losses = [[1.0] * 100, [0.0]]
    assert aggregate(losses, ["episode", "design"]) == pytest.approx(0.5)


def test_turns_of_one_episode_share_a_token_mean():
    assert aggregate([[1.0, 1.0, 1.0], [5.0]], ["a", "a"]) == pytest.approx(2.0)
    assert aggregate([[], [3.0]], ["empty", "b"]) == pytest.approx(3.0)
    assert aggregate([], []) == 0.0
    with pytest.raises(ValueError, match="1 rows for 2 sample ids"):
        aggregate([[1.0]], ["a", "b"])
