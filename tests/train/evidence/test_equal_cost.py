"""Arms at equal cost, variety at equal n, and the criteria."""

import pytest

from spade_train.analysis.embedding import available
from spade_train.evidence.criteria import check
from spade_train.evidence.equal_cost import budget, compare, rates_at
from spade_train.evidence.gather import costs
from spade_train.evidence.variety import near_duplicate_share, variety

HELD = {0: {"a": 0.0, "b": 0.5}, 2: {"a": 0.5, "b": 0.5}, 4: {"a": 1.0, "b": 0.5}}


def test_costs_stand_before_each_step_and_measuring_is_free(facts):
    run = facts(steps=4, flops=[10.0, 20.0, 30.0, 40.0, 50.0])
    assert costs(run, "flops") == [0.0, 10.0, 20.0, 30.0, 50.0]
    # Two of a step's three seconds trained, at two CPU seconds a second.
    assert costs(run, "cpu_seconds") == [0.0, 4.0, 8.0, 12.0, 20.0]


def test_win_rates_are_read_off_at_the_cost_that_every_run_has_reached(facts):
    full = facts(steps=4, heldout=HELD, flops=[10.0, 20.0, 30.0, 40.0, 50.0])
    frozen = facts("frozen_designer", steps=4, heldout=HELD, flops=[5.0, 10.0, 15.0, 20.0, 25.0])
    assert budget([full, frozen], "flops") == 25.0
    # `full` measured at costs 0, 20, 50: at 25 a sixth of the way from the second to the third.
    assert rates_at(full, "flops", 25.0) == pytest.approx({"a": 0.5 + 0.5 / 6, "b": 0.5})
    assert rates_at(frozen, "flops", 25.0) == {"a": 1.0, "b": 0.5}


def test_the_gain_is_paired_by_seed(facts):
    def runs(arm, rates):
        return [
            facts(arm, seed, steps=4, heldout={0: {"a": 0.0}, 4: {"a": rate}})
            for seed, rate in rates.items()
        ]

    full = runs("full", {1: 0.5, 2: 0.7, 3: 0.9})
    other = runs("no_memory", {1: 0.4, 2: 0.5, 3: 0.6})
    found = compare("no_memory", other, full, "flops", budget([*full, *other], "flops"))
    assert found.win_rates == pytest.approx({1: 0.4, 2: 0.5, 3: 0.6})
    assert found.gains == pytest.approx({1: 0.1, 2: 0.2, 3: 0.3})
    half = 4.30265 * 0.1 / 3**0.5
    assert found.gain_interval == pytest.approx((0.2 - half, 0.2 + half), abs=1e-5)
    itself = compare("full", full, full, "flops", 5.0)
    assert (itself.gains, itself.gain_interval) == ({}, None)


def test_near_duplicates_are_counted_from_the_second_on():
    a = "class AEnv:\n    N = 3\n"
    other = "class CEnv:\n" + "".join(f"    x{i} = {i} * {i + 1}\n" for i in range(9))
    assert near_duplicate_share([a, a.replace("A", "B"), other, a]) == 0.5
    assert near_duplicate_share([a, other]) == 0.0


@pytest.mark.skipif(not available("sklearn"), reason="scikit-learn is not installed")
def test_variety_is_measured_at_equal_n(facts, made):
    alike = facts(made=[made(0) for _ in range(9)])
    different = facts("no_corpus", made=[made(i, family=f"F{i}", **{f"x{i}": i}) for i in range(6)])
    found = variety([alike, different], "tfidf")
    one, other = found["full", 1], found["no_corpus", 1]
    assert (one.n, other.n) == (6, 6)
    assert one.vendi == pytest.approx(1.0)
    assert one.near_duplicates == pytest.approx(5 / 6)
    assert other.vendi > 1.5
    assert found == variety([alike, different], "tfidf")
    assert variety([facts()], "tfidf") == {}


def good(facts, made, arm="full", last=0.75):
    """A run that meets every criterion, as far as its held-out win rate lets it."""
    held = {0: {f"e{i}": 0.25 for i in range(9)}, 8: {f"e{i}": last for i in range(9)}}
    held[8]["e0"] = last - 0.25
    designs = [made(0, wins=0, regret=0.5 + r, rounds=3) for r in (0.0, 0.1)]
    designs += [made(step, wins=2, regret=0.3, rounds=r) for step in (2, 4) for r in (1, 2)]
    designs += [made(7, wins=3, regret=0.1 + r, rounds=4) for r in (0.0, 0.1)]
    return facts(arm, made=designs, heldout=held, tries=dict.fromkeys(range(8), (10, 9)))


def test_a_run_that_meets_every_criterion(facts, made):
    run, frozen = good(facts, made), good(facts, made, "frozen_designer", last=0.5)
    checks = check(run, frozen, budget([run, frozen], "flops"))
    assert [c.met for c in checks] == [True] * 8
    assert [c.name for c in checks if c.aim] == [
        "levers: middle easier than start",
        "better than a frozen designer at equal FLOPs",
    ]
    assert checks[0].value.startswith("+0.47 (+0.41 to +0.54)")
    assert checks[1].value == "0.00 (0.00 to 0.66) of 2"
    assert checks[4].value == "-0.40 ± 0.07 (SE) in 1 families"


def test_what_is_not_met_is_said(facts, made):
    held = {0: {f"e{i}": 0.5 for i in range(9)}, 8: {f"e{i}": 0.5 + i / 90 for i in range(9)}}
    designs = [made(step, wins=2, regret=0.3, rounds=1 + step % 2) for step in range(8)]
    run = facts(made=designs, heldout=held, tries=dict.fromkeys(range(8), (10, 8)))
    checks = check(run)
    assert [c.met for c in checks] == [False, False, True, False, False, False, False, None]
    assert checks[0].value.startswith("+0.04")
    assert checks[4].value == "no family mastered"
    assert checks[7].value == "not run"


def test_an_empty_run_can_say_nothing(facts):
    assert [c.met for c in check(facts())] == [None, None, None, None, False, None, None, None]
