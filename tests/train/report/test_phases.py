import pytest

from spade_train.report.phases import (
    NORMAL,
    Estimate,
    direction,
    estimate,
    interval,
    quarters,
    third_of,
)


def test_a_quarter_is_of_the_values_that_are_there():
    first, last = quarters([None, 0.0, 1.0, None, *[0.5] * 4, 3.0, 5.0, None])
    assert (first.mean, first.count) == (0.5, 2)
    assert (last.mean, last.count) == (4.0, 2)
    assert first.error == pytest.approx(0.5)


@pytest.mark.parametrize("values", [[], [1.0], [None, 1.0, None]])
def test_one_value_has_no_ends(values):
    assert quarters(values) is None


def test_a_single_value_has_the_error_that_it_came_with():
    first, last = quarters([0.2, 0.5, 0.9], [0.05, None, 0.06])
    assert (first.error, last.error) == (0.05, 0.06)
    assert quarters([0.2, 0.9])[0].error is None


def test_few_values_make_wide_intervals():
    two = estimate([0.0, 1.0])
    assert two.scale > 12
    many = estimate([0.0, 1.0] * 200)
    assert many.scale == pytest.approx(NORMAL, abs=0.02)


@pytest.mark.parametrize(
    ("first", "last", "word"),
    [
        (Estimate(0.2, 0.02, 9), Estimate(0.5, 0.02, 9), "up"),
        (Estimate(0.5, 0.02, 9), Estimate(0.2, 0.02, 9), "down"),
        (Estimate(0.2, 0.2, 9), Estimate(0.5, 0.2, 9), "level"),
        (Estimate(0.2, None, 1), Estimate(0.5, 0.2, 1), "unknown"),
    ],
)
def test_a_direction_is_named_only_beyond_the_error(first, last, word):
    assert direction(first, last) == word


def test_an_interval_covers_the_change():
    low, high = interval(Estimate(0.2, 0.03, 9), Estimate(0.5, 0.04, 9))
    assert (low, high) == pytest.approx((0.3 - NORMAL * 0.05, 0.3 + NORMAL * 0.05))


def test_thirds_of_a_run():
    assert [third_of(step, [0, 5, 10]) for step in (0, 5, 10)] == [0, 1, 2]
    assert third_of(7, [7]) == 0
