import pytest

from spade_train.skills import (
    TRAINED_SKILLS,
    interleaved,
    kind_of,
    mixed_span,
    rotation,
    slot_skills,
    windows,
)


def test_rotation_golden(golden):
    for case in golden["skill_rotation"]:
        skills = rotation(case["skills"], case["per_regeneration"], case["interval"], case["step"])
        assert skills == case["expected"]


def test_rotation_never_names_a_skill_twice():
    assert rotation(["a", "b"], 3, 4, 8) == ["a", "b"]
    with pytest.raises(ValueError, match="no skills"):
        rotation([], 3, 4, 0)


def test_slots_are_spread_evenly():
    assert slot_skills(["a", "b", "c"], 7) == ["a", "b", "c", "a", "b", "c", "a"]


@pytest.mark.parametrize("per_regeneration", [2, 3, 6, 12])
def test_a_mixed_rotation_names_both_kinds_each_time_and_every_skill_in_a_round(per_regeneration):
    skills = interleaved(TRAINED_SKILLS["mixed"])
    assert len(set(skills)) == 12
    rounds = [rotation(skills, per_regeneration, 1, step) for step in range(12)]
    assert all({kind_of(skill) for skill in r} == {"game", "tool_use"} for r in rounds)
    counts = [sum(skill in r for r in rounds) for skill in skills]
    assert set(counts) == {per_regeneration}


def test_skills_of_a_rarer_kind_are_spread_evenly():
    games = ["optimization", "causal_inference", "logical_deduction", "spatial_reasoning"]
    skills = interleaved([*games, "tool_selection", "data_retrieval"])
    kinds = [kind_of(skill) for skill in skills]
    assert kinds == ["game", "game", "tool_use"] * 2
    assert mixed_span(skills) == 3
    for first in range(6):
        assert set((kinds + kinds)[first : first + 3]) == {"game", "tool_use"}
    assert interleaved(games) == tuple(games)


def test_windows_golden(golden):
    for case in golden["delay_schedule"]:
        found = windows(case["steps"], case["regenerate_every"], case["designer_delay"])
        assert [
            {"made": w.made, "plays": list(w.plays), "trained": w.trained} for w in found
        ] == case["expected"]


def test_the_last_window_is_flushed_at_the_end():
    last = windows(10, 4, 8)[-1]
    assert (last.made, last.plays, last.trained) == (8, (8, 9), 10)
