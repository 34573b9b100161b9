import json

import pytest

from spade_train.analysis.duplicates import normalise_source, source_key
from spade_train.memory import Memory, MemoryRecord, verdict


def record(number=0, *, win_rate=0.5, regret=0.1, skill="optimization", source=None, title="t"):
    if source is None:
        source = f"class HopEnv:\n    N = {number}\n"
    return MemoryRecord(
        sha256=f"{number:064x}",
        title=title,
        source=source,
        hint="Hop.",
        kind="game",
        skill=skill,
        win_rate=win_rate,
        regret=regret,
        regret_se=0.05,
        step=number,
        parents=("p",),
    )


def test_selection_golden(golden):
    (case,) = golden["memory_selection"]
    memory = Memory()
    for number, values in enumerate(case["records"]):
        memory.add(record(number, **values))
    expected = case["expected"]
    exemplars = memory.exemplars("optimization", 99)
    assert [[r.win_rate, r.regret] for r in exemplars] == expected["frontier_by_regret"]
    found = [[r.win_rate, r.regret] for r in memory.counterexamples("optimization", 99)]
    assert sorted(found) == sorted(expected["too_hard"] + expected["too_easy"])


def test_capacity_golden(golden):
    (case,) = golden["memory_capacity"]
    memory = Memory(case["capacity"])
    for number in case["added"]:
        memory.add(record(number))
    assert [r.step for r in memory] == case["expected"]
    with pytest.raises(ValueError, match="at least one record"):
        Memory(0)


def test_only_the_skill_that_was_asked_for():
    memory = Memory()
    memory.add(record(1, skill="optimization"))
    memory.add(record(2, skill="causal_inference"))
    assert [r.step for r in memory.exemplars("causal_inference", 5)] == [2]
    assert memory.exemplars("memory_recall", 5) == []


def test_an_exemplar_has_a_regret():
    memory = Memory()
    memory.add(record(1, regret=None))
    assert memory.exemplars("optimization", 5) == []


def test_easy_and_hard_take_turns():
    memory = Memory()
    for number in range(6):
        memory.add(record(number, win_rate=0.95))
    memory.add(record(7, win_rate=0.0))
    assert [r.step for r in memory.counterexamples("optimization", 3)] == [5, 7, 4]


def test_a_prompt_gets_one_of_several_near_duplicates():
    memory = Memory()
    memory.add(record(1, regret=0.9, source="class AEnv:\n    N = 3  # three\n"))
    memory.add(record(2, regret=0.8, source="class BEnv:\n    N = 3\n"))
    memory.add(record(4, regret=0.1))
    assert [r.step for r in memory.exemplars("optimization", 2)] == [1, 4]


LONG = "\n".join(
    ["class {name}Env:", "    '''{doc}'''", "    title = '{doc}'", "    N = {n}"]
    + [f"    def rule_{i}(self, x):\n        return x * {i} + self.N" for i in range(12)]
)


def test_duplicates_are_recognised_whatever_they_are_called():
    memory = Memory()
    memory.add(record(1, source=LONG.format(name="A", doc="First.", n=3)))
    renamed = LONG.format(name="Bee", doc="Second one.", n=3) + "  # the end\n"
    assert memory.duplicate_of(renamed, near=2.0).step == 1
    lever = LONG.format(name="A", doc="First.", n=4)
    assert memory.duplicate_of(lever, near=2.0) is None
    assert memory.duplicate_of(lever).step == 1
    assert memory.duplicate_of("class OtherEnv:\n    pass\n") is None


def test_normalising_keeps_what_changes_the_play():
    assert normalise_source("x = 1") != normalise_source("x = 2")
    assert normalise_source("a = 'x'") == normalise_source('a = "x"')
    assert normalise_source("a = [\n  'x'\n]") != normalise_source("a = [\n]")
    assert normalise_source("not  python (") == normalise_source("not python (")
    assert source_key("x=1") == source_key("x = 1\n# one\n")


def test_state_survives_json():
    memory = Memory(7)
    for number in range(9):
        memory.add(record(number, regret=None if number % 2 else 0.3))
    again = Memory.from_state(json.loads(json.dumps(memory.to_state())))
    assert list(again) == list(memory)
    assert again.capacity == 7
    again.add(record(99))
    assert len(again) == 7


@pytest.mark.parametrize(
    ("win_rate", "regret", "words"),
    [
        (0.97, 0.0, "too easy: solved in 97 %"),
        (0.0, 0.9, "the hint adds +0.90: its rule can't be found"),
        (0.05, 0.0, "the hint does not open it either"),
        (0.05, None, "the hint does not open it either"),
        (0.5, 0.2, "solved in 50 % of plays"),
    ],
)
def test_what_made_it_so(win_rate, regret, words):
    assert words in verdict(record(win_rate=win_rate, regret=regret))
