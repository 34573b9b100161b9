"""What the report says in words has to be true of runs that went well, badly and nowhere."""

import pytest

from spade_train.report.cards import REACH, Card, build_cards
from spade_train.report.phases import Estimate
from spade_train.report.points import judged, lever_thirds, percent, points
from spade_train.report.records import read_run
from spade_train.report.series import metric_columns

LENGTH = 40


def columns(**ends):
    """Metrics that go in a line from one end to the other, with a little noise on the way."""
    rows = []
    for step in range(LENGTH):
        row = {"step": step}
        for name, (first, last) in ends.items():
            value = first + (last - first) * step / (LENGTH - 1) + 0.01 * (-1) ** step
            row[name.replace("__", "/")] = value
        rows.append(row)
    return metric_columns(rows)


def text(found, name):
    return " ".join(next(point["text"] for point in found if point["id"] == name))


def design(step, **values):
    lines = "".join(f"    {name} = {value}\n" for name, value in values.items())
    source = f"class AEnv:\n{lines}"
    row = {"step": step, "slot": 0, "verdict": "accepted", "source": source, "skill": "recall"}
    return Card(row, levers=dict(values))


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((0.1, 0.6), "a rise of 38 points"),
        ((0.6, 0.1), "a fall of 38 points"),
        ((0.3, 0.3), "no measurable change"),
    ],
)
def test_the_agents_point_says_what_came_out(ends, words):
    found = points(columns(agent__win_rate=ends), [])
    assert words in text(found, "agent")
    assert "nothing tells the two apart" in text(found, "agent")


def test_held_out_figures_are_called_in_where_there_are_some():
    found = points(columns(agent__win_rate=(0.1, 0.6), heldout__win_rate=(0.1, 0.1)), [])
    assert "they tell the two apart" in text(found, "agent")


def test_the_designers_point_names_the_worst_step_and_the_band():
    series = columns(designer__acceptance=(0.9, 0.9), designer__band_share=(0.2, 0.7))
    series["designer/acceptance"][7] = 0.25
    cards = [design(0, rounds=1), Card({"step": 1, "verdict": "rejected"})]
    said = text(points(series, cards), "designer")
    assert "Of 2 designs that it wrote, 50\u00a0% passed the checks" in said
    assert "25\u00a0% in the worst step" in said
    assert "a rise of 38 points" in said
    assert said.count("learnable band") == 1


@pytest.mark.parametrize(
    ("regret", "hinted", "words"),
    [
        ((0.5, 0.1), (0.6, 0.6), "the plays without a hint caught up"),
        ((0.5, 0.1), (0.6, 0.2), "hints came to help less"),
        ((0.1, 0.5), (0.2, 0.6), "hints came to help more"),
        ((0.3, 0.3), (0.5, 0.5), "has not measurably shrunk"),
    ],
)
def test_a_falling_regret_is_not_praised_where_hints_got_worse(regret, hinted, words):
    series = columns(
        designer__regret=regret, agent__win_rate_hinted=hinted, agent__win_rate=(0.2, 0.3)
    )
    assert words in text(points(series, []), "hints")


def test_hint_regret_is_explained_by_how_seeds_were_paired():
    series = columns(designer__regret=(0.5, 0.1))
    for paired, words in ((True, "on the same seeds"), (False, "on other seeds")):
        (point,) = points(series, [], paired=paired)
        assert words in dict(point["terms"])["Hint regret"]


def test_levers_are_told_by_thirds():
    means = [5] * 6 + [3] * 6 + [7] * 6
    cards = [design(step, rounds=2 + step % 2, options=means[step]) for step in range(18)]
    (rounds, options) = sorted(lever_thirds(cards), key=lambda row: row["name"], reverse=True)
    assert [part.mean for part in options["thirds"]] == [5, 3, 7]
    assert rounds["name"] == "rounds"
    said = text(points({}, cards), "levers")
    assert "to the middle one, options fell; from the middle one to the last, options rose." in said
    assert "rounds" not in said


def test_levers_that_stay_are_said_to_stay():
    cards = [design(step, rounds=2 + step % 2) for step in range(18)]
    assert text(points({}, cards), "levers").count("none of them changed measurably") == 2


def test_three_steps_are_too_few_to_tell_levers():
    cards = [design(step, rounds=2 + step) for step in range(3)]
    assert text(points({}, cards), "levers").count("there is too little to tell") == 2


def test_the_reach_of_a_rule_is_a_lever_of_the_small_world(run_folder):
    cards = build_cards(read_run(run_folder))
    names = [row["name"] for row in lever_thirds(cards)]
    assert names == ["options", "rounds", REACH]


def test_every_term_is_explained_where_it_occurs(run_folder):
    records = read_run(run_folder)
    found = points(metric_columns(records.metrics), build_cards(records))
    assert [point["id"] for point in found] == ["agent", "designer", "hints", "levers"]
    terms = [term for point in found for term, meaning in point["terms"] if meaning]
    assert terms == ["Agent", "Designer", "Learnable band", "Hint regret", "Levers"]


def test_a_run_without_figures_makes_no_points():
    assert points({}, []) == []
    assert points(metric_columns([{"step": 0, "agent/win_rate": 0.5}]), []) == []


def test_two_steps_are_too_few_for_a_verdict():
    series = metric_columns([{"step": i, "agent/win_rate": 0.2 + 0.6 * i} for i in range(2)])
    said = text(points(series, []), "agent")
    assert "in the first step" in said
    assert "too few to call it a change" in said
    assert "a rise" not in said


def test_judged_speaks_in_the_figures_own_unit():
    first, last = Estimate(0.5, 0.02, 9), Estimate(0.1, 0.02, 9)
    assert judged(first, last) == "a fall of 40 points (95\u00a0% interval 34 to 46)"
    assert judged(first, last, points=False) == "a fall of 0.40 (95\u00a0% interval 0.34 to 0.46)"
    assert judged(first, first, points=False).endswith("(95\u00a0% interval −0.06 to +0.06)")


def test_halves_go_up_as_they_do_in_the_browser():
    assert [percent(v) for v in (0.065, 0.125, 1.0)] == ["7\u00a0%", "13\u00a0%", "100\u00a0%"]
