"""Statistics against values worked out by hand."""

from math import sqrt

import pytest

from spade_runtime.errors import UsageError
from spade_train.analysis.intervals import t_interval, t_quantile
from spade_train.evidence import figures
from spade_train.evidence.arms import plan
from spade_train.evidence.collect import spread
from spade_train.evidence.gather import HeldoutPoint, gather, heldout_points
from spade_train.evidence.levers import difficulty, rule_reach


@pytest.mark.parametrize(
    ("degrees", "expected"), [(1, 12.706), (2, 4.303), (3, 3.182), (9, 2.262), (59, 2.001)]
)
def test_t_quantiles_are_those_of_the_tables(degrees, expected):
    assert t_quantile(degrees) == pytest.approx(expected, abs=5e-4)
    assert t_quantile(2, 0.99) == pytest.approx(9.925, abs=5e-4)


def test_an_impossible_quantile_is_refused():
    with pytest.raises(ValueError, match="0 degrees"):
        t_quantile(0)


def test_the_interval_of_three_seeds():
    low, high = t_interval([0.2, 0.3, 0.4])
    half = 4.30265 * 0.1 / sqrt(3)
    assert (low, high) == pytest.approx((0.3 - half, 0.3 + half), abs=1e-5)
    assert t_interval([0.2]) is None
    assert spread([0.2, None, 0.3, 0.4]) == pytest.approx((0.3, half), abs=1e-5)
    assert spread([0.2, None]) == (0.2, None)
    assert spread([None]) is None


def test_quarters_part_the_run_evenly(facts):
    run = facts(steps=8)
    assert [run.quarter(step) for step in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [facts(steps=3).quarter(step) for step in range(3)] == [0, 1, 2]


def test_win_rates_weigh_plays_and_regret_weighs_designs(facts, made):
    run = facts(
        made=[
            made(0, plays=4, wins=1, hinted=(2, 2), regret=0.5),
            made(1, plays=12, wins=11, hinted=(2, 1), regret=0.1),
            made(7, plays=0, wins=0, hinted=(0, 0)),
        ]
    )
    assert figures.by_quarter(run, figures.pool_win_rate) == [0.75, None, None, None]
    assert figures.by_quarter(run, figures.hinted_win_rate) == [0.75, None, None, None]
    regret = figures.regret(run.of_quarter(0))
    assert (regret.value, regret.error, regret.n) == pytest.approx((0.3, 0.2, 2))
    # 0.25 and 0.917: one of two lies in the band.
    assert figures.band_share(run.of_quarter(0)) == 0.5
    assert figures.band_share(run.of_quarter(3)) is None


def test_the_lowest_acceptance_is_that_of_the_worst_tenth(facts):
    tries = dict.fromkeys(range(20), (10, 10)) | {9: (10, 6), 10: (20, 12)}
    run = facts(steps=20, tries=tries)
    assert figures.lowest_acceptance(run) == pytest.approx(18 / 30)
    assert figures.acceptance(run) == pytest.approx(198 / 210)
    assert figures.acceptance_by_quarter(run) == pytest.approx([1.0, 46 / 50, 52 / 60, 1.0])
    assert figures.lowest_acceptance(facts()) is None


def test_regret_falls_family_by_family(facts, made):
    designs = [made(0, family="A", regret=r) for r in (0.4, 0.6)]
    designs += [made(7, family="A", wins=4, regret=0.1) for _ in range(2)]
    designs += [made(1, family="B", regret=0.2) for _ in range(2)]
    designs += [made(6, family="B", wins=3, regret=r) for r in (0.0, 0.2)]
    designs += [made(7, family="C", wins=0, regret=0.9)]
    found = {family.name: family for family in figures.family_figures(facts(made=designs))}
    assert {name: family.mastered for name, family in found.items()} == {
        "A": True,
        "B": True,
        "C": False,
    }
    change = figures.regret_change([found["A"], found["B"]])
    # A falls by 0.4 with an error of 0.1, B by 0.1 with an error of 0.1.
    assert (change.value, change.error, change.n) == pytest.approx((-0.25, sqrt(0.02) / 2, 2))
    # C was not made in the first quarter, so it has no change.
    assert figures.regret_change([found["C"]]) is None


def test_a_single_design_leaves_the_error_unknown(facts, made):
    designs = [made(0, wins=4, regret=0.4), made(7, wins=4, regret=0.1)]
    change = figures.regret_change(figures.family_figures(facts(made=designs)))
    assert change.value == pytest.approx(-0.3)
    assert (change.error, change.interval()) == (None, None)


def test_held_out_rates_by_group_and_their_change(facts):
    run = facts(
        heldout={
            0: {"shift-0": 0.0, "shift-1": 0.25, "relay-0": 0.25},
            4: {"shift-0": 0.5, "shift-1": 0.5, "relay-0": 0.5},
            8: {"shift-0": 1.0, "shift-1": 0.75, "relay-0": 0.25},
        },
        new=("relay-0",),
    )
    last = run.heldout[-1]
    shares = [
        figures.heldout_rate(last, run.families, g) for g in ("all", "known", "new", "shift", "x")
    ]
    assert shares == pytest.approx([2 / 3, 0.875, 0.25, 0.875, None])
    assert figures.heldout_rate(last, run.families, "all", "hinted") == 0.75
    assert figures.heldout_change(run) == [1.0, 0.5, 0.0]
    assert figures.heldout_change(run, "new") == [0.0]
    assert figures.middle(run).step == 4
    assert figures.heldout_change(facts(heldout={0: {"a": 0.0}})) == []


def test_difficulty_is_reckoned_within_a_family():
    designs = [
        ("A", {"rounds": 1, "options": 4}),
        ("A", {"rounds": 3, "options": 4}),
        ("B", {"rounds": 9}),
        ("B", {}),
    ]
    # `options` never moves in A: it counts as 0 beside the rounds' -1 and +1.
    assert difficulty(designs) == [-0.5, 0.5, 0.0, None]


def test_designs_that_get_easier_and_then_harder(facts, made):
    rounds = {0: (3, 3), 1: (3, 3), 2: (1, 2), 4: (2, 1), 6: (3, 4), 7: (4, 5)}
    run = facts(made=[made(step, rounds=r) for step, pair in rounds.items() for r in pair])
    easier, harder = figures.difficulty_changes(run)
    # Twelve designs; their mean is 2.833 and their standard deviation sqrt(47 / 36).
    scale = sqrt(47 / 36)
    assert easier.value == pytest.approx((1.5 - 3.0) / scale)
    assert harder.value == pytest.approx((4.0 - 1.5) / scale)
    assert easier.interval()[1] < 0 < harder.interval()[0]


@pytest.mark.parametrize(
    ("source", "reach"),
    [
        ("want = (clue + 2) % 10", 2),
        ("want = (10 + clue - 3) % 10", 3),
        ("want = self.points[(self.points.index(clue) + 1) % 8]", 1),
        ("want = sorted(shown)[0]", 1),
        ("want = sorted(shown)[-2]", 2),
        ("two = (one + rng.randrange(1, 10)) % 10\nwant = max(one, two)", None),
        ("want = (one + two) % 10", None),
        ("no python at all", None),
    ],
)
def test_the_rules_reach_is_read_from_the_code(source, reach):
    assert rule_reach(source) == reach


def test_a_measurement_without_a_play_of_an_arm_says_nothing():
    assert figures.heldout_rate(HeldoutPoint(0, {}, {}), {}) is None


def test_measurements_are_read_by_environment_and_copies_of_files_passed_over(tmp_path):
    rows = [("unhinted", True), ("unhinted", False), ("hinted", True)]
    lines = [f'{{"arm": "{arm}", "name": "a", "solved": {str(won).lower()}}}' for arm, won in rows]
    (tmp_path / "heldout-000002.jsonl").write_text("\n".join(lines))
    (tmp_path / "heldout-old.jsonl").write_text("{}")
    assert heldout_points(tmp_path) == [HeldoutPoint(2, {"a": 0.5}, {"a": 1.0})]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"solved": true}', "a line has no `arm` and `name`"),
        ('{"arm": "unhinted", "name": [1]}', "a line has no `arm` and `name`"),
        ('{"arm": "unhin', "000000.jsonl:1: not readable"),
    ],
)
def test_a_damaged_measurement_is_no_evidence(tmp_path, line, message):
    (tmp_path / "episodes").mkdir()
    (tmp_path / "episodes" / "heldout-000000.jsonl").write_text(line + "\n")
    with pytest.raises(UsageError, match=f"{message}.*remove the folder {tmp_path},"):
        heldout_points(tmp_path / "episodes")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"step": 0}', "the line of step 0 has no `seconds`"),
        ('{"step": 3, "seconds": "x"}', "seconds of step 3 is no number"),
        ('{"step": 3, "seconds": 1.5, "flops/agent": []}', "flops/agent of step 3"),
    ],
)
def test_a_run_whose_cost_is_not_known_is_no_evidence(tmp_path, line, message):
    (one,) = plan(tmp_path, arms=["full"], seeds=[1])
    one.folder.mkdir(parents=True)
    (one.folder / "metrics.jsonl").write_text(line + "\n")
    with pytest.raises(UsageError, match=f"{message}.*remove the folder"):
        gather(one)
