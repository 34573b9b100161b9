import pytest

from spade_train.skills import rotation, slot_skills, windows


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


def test_windows_golden(golden):
    for case in golden["delay_schedule"]:
        found = windows(case["steps"], case["regenerate_every"], case["designer_delay"])
        assert [
            {"made": w.made, "plays": list(w.plays), "trained": w.trained} for w in found
        ] == case["expected"]


def test_the_last_window_is_flushed_at_the_end():
    last = windows(10, 4, 8)[-1]
    assert (last.made, last.plays, last.trained) == (8, (8, 9), 10)
