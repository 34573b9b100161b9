import numpy as np
import pytest

from spade_train.objectives import LearningPotential, Outcome, make_objective
from spade_train.rewards import (
    MovingAverage,
    SeedReturn,
    blended_designer_reward,
    centre_by_skill,
    difficulty_anchor,
    episode_return,
    hint_regret,
    win_rate,
)


def split(case, *outputs):
    """Part a golden case into its inputs and what is expected."""
    inputs = {k: v for k, v in case.items() if k not in ("expected", "note", *outputs)}
    return inputs, case["expected"]


def test_anchor_golden(golden):
    for case in golden["difficulty_anchor"]:
        inputs, expected = split(case)
        assert difficulty_anchor(**inputs) == pytest.approx(expected, abs=1e-5), case


def test_anchor_takes_arrays():
    rates = np.array([0.0, 0.3, 0.5, 1.0])
    anchors = difficulty_anchor(rates, low=0.4, high=0.6, ramp=0.25)
    assert anchors.tolist() == pytest.approx([0.0, 0.6, 1.0, 0.0])


def test_blend_golden(golden):
    for case in golden["blended_designer_reward"]:
        inputs, expected = split(case)
        assert blended_designer_reward(**inputs) == pytest.approx(expected, abs=1e-5), case


def test_designer_batch_golden(golden):
    (case,) = golden["designer_batch"]
    plays = case["plays_per_step"]
    environments = case["environments"]
    expected = case["expected"]
    regrets = [e["hinted_mean"] - e["wins"][0] / plays for e in environments]
    rates = [sum(e["wins"]) / (plays * len(e["wins"])) for e in environments]
    assert regrets == pytest.approx(expected["regret"], abs=1e-5)
    assert rates == pytest.approx(expected["win_rate"], abs=1e-5)

    parameters = ("regret_weight", "anchor_weight", "regret_saturation", "low", "high", "ramp")
    objective = make_objective("blend", **{name: case[name] for name in parameters})
    skills = [e["skill"] for e in environments]
    raw = objective.score(
        [Outcome(s, g, w) for s, g, w in zip(skills, regrets, rates, strict=True)]
    )
    assert raw == pytest.approx(expected["raw"], abs=1e-5)
    assert centre_by_skill(raw, skills).tolist() == pytest.approx(expected["centred"], abs=1e-5)


def test_return_golden(golden):
    for case in golden["episode_return_terminal"]:
        inputs, expected = split(case)
        assert episode_return(**inputs) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("rewards", "terminated", "mode", "credit", "expected"),
    [
        ([0.25, 0.5], False, "sum", None, 0.75),
        ([0.6, 0.7], True, "sum", None, 1.0),
        ([0.0, 0.0], False, "sum", 0.5, 0.5),
        ([0.25, 0.5], False, "sum", 0.5, 0.75),
        ([-1.0, -1.0], True, "sum", None, -1.0),
        ([0.25, 0.5, 0.0], False, "best", None, 0.5),
        ([0.0, 0.0], False, "best", 2 / 3, 2 / 3),
        ([], False, "best", None, 0.0),
        ([-0.5], True, "best", None, -0.5),
    ],
)
def test_other_return_modes(rewards, terminated, mode, credit, expected):
    assert episode_return(rewards, terminated, mode=mode, credit=credit) == pytest.approx(expected)


def test_unknown_modes_are_refused():
    with pytest.raises(ValueError, match="unknown return mode 'last'"):
        episode_return([1.0], True, mode="last")
    with pytest.raises(ValueError, match="unknown seed pairing 'both'"):
        hint_regret([], [], pairing="both")


def arm(values, first_seed=0):
    return [SeedReturn(first_seed + i, v) for i, v in enumerate(values)]


def test_paired_regret_and_its_error():
    regret = hint_regret(arm([1.0, 1.0, 1.0, 0.0]), arm([0.0, 1.0, 0.0, 0.0]))
    assert regret.value == pytest.approx(0.5)
    # differences 1 0 1 0: deviation 0.57735 over four seeds
    assert regret.standard_error == pytest.approx(0.288675, abs=1e-5)
    assert (regret.seeds, regret.void) == (4, 0)


def test_plays_of_a_seed_are_averaged_first():
    unhinted = [SeedReturn(1, 0.0), SeedReturn(1, 1.0), SeedReturn(2, 0.0), SeedReturn(2, 0.0)]
    hinted = [SeedReturn(1, 1.0), SeedReturn(2, 1.0)]
    regret = hint_regret(hinted, unhinted)
    assert regret.value == pytest.approx(0.75)
    assert regret.standard_error == pytest.approx(0.25)


def test_fewer_hinted_plays_pair_the_first_seeds():
    regret = hint_regret(arm([1.0, 1.0]), arm([0.0, 0.0, 1.0, 1.0]))
    assert regret == hint_regret(arm([1.0, 1.0]), arm([0.0, 0.0]))
    assert regret.value == 1.0


def test_a_void_seed_leaves_both_arms():
    regret = hint_regret(arm([None, 1.0, 1.0]), arm([0.0, 0.0, 1.0]))
    assert regret.value == pytest.approx(0.5)
    assert (regret.seeds, regret.void) == (2, 1)


def test_fewer_than_half_of_the_pairs_makes_the_regret_missing():
    half = hint_regret(arm([1.0, 1.0, None, None]), arm([0.0, 0.0, 0.0, 0.0]))
    assert half.value == pytest.approx(1.0)
    fewer = hint_regret(arm([1.0, None, None, None]), arm([0.0, 0.0, 0.0, 0.0]))
    assert fewer.value is None
    assert fewer.standard_error is None
    assert (fewer.seeds, fewer.void) == (1, 3)


def test_no_plays_is_missing():
    assert hint_regret([], []).value is None
    assert hint_regret([], [], pairing="independent").value is None


def test_one_seed_has_no_error():
    regret = hint_regret(arm([1.0]), arm([0.0]))
    assert regret.value == 1.0
    assert regret.standard_error is None


def test_independent_pairing_adds_the_errors_of_the_arms():
    hinted, unhinted = arm([1.0, 1.0, 0.0, 0.0]), arm([0.0, 0.0, 0.0, 1.0], first_seed=100)
    regret = hint_regret(hinted, unhinted, pairing="independent")
    assert regret.value == pytest.approx(0.25)
    assert regret.standard_error == pytest.approx(np.hypot(0.288675, 0.25), abs=1e-5)
    gone = hint_regret(arm([1.0, None, None]), unhinted, pairing="independent")
    assert gone.value is None
    assert gone.void == 2


def test_pairing_lowers_the_error_where_seeds_differ_in_difficulty():
    unhinted = arm([0.0, 0.2, 0.4, 0.6])
    hinted = arm([0.3, 0.5, 0.7, 0.9])
    paired = hint_regret(hinted, unhinted)
    independent = hint_regret(hinted, unhinted, pairing="independent")
    assert paired.value == pytest.approx(independent.value)
    assert paired.standard_error < 1e-9 < 0.1 < independent.standard_error


def test_win_rate_leaves_void_plays_out():
    assert win_rate([True, None, False, False]) == pytest.approx(1 / 3)
    assert win_rate([None, None]) is None


def test_moving_average_golden(golden):
    for case in golden["moving_average"]:
        average = MovingAverage(case["gamma"])
        values = [average.update(value) for value in case["values"]]
        assert values == pytest.approx(case["expected"], abs=1e-7)
    with pytest.raises(ValueError, match="gamma"):
        MovingAverage(0.0)


def test_learning_potential_golden(golden):
    for case in golden["learning_potential"]:
        objective = LearningPotential(case["slow_gamma"])
        outcomes = [Outcome("a", 0.0, 0.0, tuple(plays)) for plays in case["plays"]]
        raw = objective.score(outcomes)
        centred = centre_by_skill(raw, ["a"] * len(raw)).tolist()
        assert centred == pytest.approx(case["expected"], abs=1e-5)


def test_learning_potential_survives_a_checkpoint():
    outcomes = [Outcome("a", 0.0, 0.0, (1.0, 0.0)), Outcome("b", 0.0, 0.0, (1.0,))]
    unbroken, stopped = LearningPotential(), LearningPotential()
    for objective in (unbroken, stopped):
        objective.score(outcomes)
    resumed = LearningPotential()
    resumed.from_state(stopped.to_state())
    later = [Outcome("a", 0.0, 0.0, (0.25,)), Outcome("b", 0.0, 0.0, (0.0, 1.0))]
    assert resumed.score(later) == unbroken.score(later)


@pytest.mark.parametrize("name", ["blend", "regret", "anchor", "learning_potential"])
def test_objectives_answer_none_for_what_cannot_be_judged(name):
    missing = Outcome("a", None, None, ())
    sound = Outcome("a", 0.2, 0.5, (0.5, 0.5))
    scores = make_objective(name).score([missing, sound])
    assert scores[0] is None
    assert scores[1] is not None


def test_objectives_pay_what_they_say():
    outcome = Outcome("a", 0.05, 0.3, (0.3,))
    assert make_objective("regret").score([outcome]) == [0.05]
    assert make_objective("anchor").score([outcome]) == [pytest.approx(0.6)]
    with pytest.raises(ValueError, match="unknown objective 'luck'"):
        make_objective("luck")
