from spade_train.analysis.played import Played
from spade_train.report.cards import Card
from spade_train.report.versions import compare, start_and_end

EARLY = """class AEnv(TextEnv):
    skill = "recall"
    rounds = 2
    options = 4

    def reset(self, seed=None):
        return "go", {}
"""
LATE = EARLY.replace("rounds = 2", "rounds = 3").replace(
    "    options", "    spare = 1\n    options"
)


def card(step, rate, skill="recall", source=EARLY, slot=0):
    row = {"step": step, "slot": slot, "verdict": "accepted", "skill": skill, "source": source}
    return Card(row, played=Played(plays=100, wins=round(100 * rate)))


def test_of_each_quarter_the_design_of_median_win_rate_is_taken():
    early = [card(0, rate, slot=i) for i, rate in enumerate((0.9, 0.1, 0.4))]
    between = [card(step, 0.77) for step in (1, 2)]
    late = [card(3, rate, source=LATE, slot=i) for i, rate in enumerate((0.0, 0.6, 0.5))]
    (pair,) = start_and_end([*early, *between, *late])
    assert (pair["start"]["win"], pair["end"]["win"]) == (0.4, 0.5)
    assert (pair["start"]["env"], pair["end"]["env"]) == (2, 7)
    assert pair["of"] == [3, 3]


def test_of_equal_ones_the_earliest_and_the_latest_are_taken():
    cards = [card(step, 0.5) for step in (0, 0, 1, 2, 3, 3)]
    (pair,) = start_and_end(cards)
    assert (pair["start"]["env"], pair["end"]["env"]) == (0, 5)


def test_only_designs_of_one_skill_are_set_side_by_side():
    cards = [card(0, 0.5, "recall"), card(0, 0.5, "logic"), card(3, 0.5, "logic")]
    assert [pair["skill"] for pair in start_and_end(cards)] == ["logic"]
    assert start_and_end(cards[:2]) == []


def test_a_skill_with_more_designs_comes_first():
    cards = [card(step, 0.5, skill) for step in (0, 3) for skill in ("b", "a", "c", "c")]
    assert [pair["skill"] for pair in start_and_end(cards)] == ["c", "a", "b"]


def test_equal_lines_stand_side_by_side_and_others_are_marked():
    rows, (early, late) = compare(EARLY, LATE)
    assert [2, 2] in rows and [3, 3] in rows and [None, 4] in rows and [4, 5] in rows
    assert early == {3: [[13, 14]]}
    assert late == {3: [[13, 14]], 4: []}


def test_hardly_a_line_in_common_marks_nothing():
    assert compare(EARLY, "x = 1\ny = 2\n") == ([], ({}, {}))


def test_stretches_are_counted_as_a_browser_counts():
    _, (early, late) = compare('a\nb\nt = "\U0001f600 one"', 'a\nb\nt = "\U0001f600 two"')
    assert early == late == {3: [[8, 11]]}
