import json

import pytest

from spade_train.report import read_run
from spade_train.report.cards import build_cards, shown_episode
from spade_train.report.payload import build_payload
from spade_train.report.series import lever_series, metric_columns, rounded
from spade_train.report.story import figures, headline


@pytest.fixture(scope="module")
def cards(run_folder):
    return build_cards(read_run(run_folder))


@pytest.fixture(scope="module")
def payload(run_folder):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    return build_payload(read_run(run_folder))


def test_plays_join_the_designs_they_are_of(cards, run_folder):
    accepted = [card for card in cards if card.accepted]
    assert accepted
    assert all(card.played is None for card in cards if not card.accepted)
    card = next(c for c in accepted if c.played and c.played.void == 0)
    path = run_folder / "episodes" / f"step-{card.step:06d}.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    own = [r for r in rows if r["design"] == card.design["sha256"]]
    unhinted = [r for r in own if r["arm"] == "unhinted"]
    hinted = [r for r in own if r["arm"] == "hinted"]
    assert card.played.plays == len(unhinted)
    assert card.win_rate == pytest.approx(sum(r["solved"] for r in unhinted) / len(unhinted))
    gain = sum(r["return"] for r in hinted) - sum(r["return"] for r in unhinted)
    assert card.regret == pytest.approx(gain / len(hinted))
    assert {e["arm"] for e in card.played.kept} == {"unhinted", "hinted"}


def test_void_plays_count_for_nothing(cards):
    void = [card.played for card in cards if card.played and card.played.void]
    assert void
    for played in void:
        assert (played.plays + played.hinted_plays + played.void) % 16 == 0
        assert played.faults == {"SPD801": played.void}


def test_slots_that_wrote_the_same_share_their_plays(tmp_path):
    design = {"step": 0, "try": 0, "verdict": "accepted", "source": "x", "sha256": "a"}
    designs = [{**design, "slot": slot} for slot in (0, 1)]
    (tmp_path / "designs.jsonl").write_text("".join(json.dumps(d) + "\n" for d in designs))
    (tmp_path / "episodes").mkdir()
    play = {"design": "a", "arm": "unhinted", "seed": 1, "rewards": [1.0], "solved": True}
    (tmp_path / "episodes" / "step-000000.jsonl").write_text((json.dumps(play) + "\n") * 4)
    first, second = build_cards(read_run(tmp_path))
    assert first.played is second.played
    assert first.played.plays == 4
    named = [{**play, "name": f"000000-{slot:03d}"} for slot in (0, 1, 1)]
    text = "".join(json.dumps(episode) + "\n" for episode in named)
    (tmp_path / "episodes" / "step-000000.jsonl").write_text(text)
    first, second = build_cards(read_run(tmp_path))
    assert (first.played.plays, second.played.plays) == (1, 2)


def test_the_same_source_made_twice_keeps_its_plays_apart(tmp_path):
    design = {"slot": 0, "try": 0, "verdict": "accepted", "source": "x", "sha256": "a"}
    designs = [{**design, "step": 0}, {**design, "step": 4}]
    (tmp_path / "designs.jsonl").write_text("".join(json.dumps(d) + "\n" for d in designs))
    (tmp_path / "episodes").mkdir()
    play = {"design": "a", "arm": "unhinted", "seed": 1, "rewards": [1.0], "return": 1.0}
    for step, solved in ((0, True), (1, True), (5, False)):
        path = tmp_path / "episodes" / f"step-{step:06d}.jsonl"
        path.write_text(json.dumps({**play, "solved": solved}) + "\n")
    first, second = build_cards(read_run(tmp_path))
    assert (first.played.plays, first.win_rate) == (2, 1.0)
    assert (second.played.plays, second.win_rate) == (1, 0.0)


def test_lineage_goes_both_ways(cards):
    linked = [(i, card) for i, card in enumerate(cards) if card.parents]
    assert linked
    for index, card in linked:
        for parent in card.parents:
            assert index in cards[parent].children
            assert cards[parent].step < card.step


def test_levers_follow_the_agent(cards):
    found = {row["name"]: row for row in lever_series(cards)}
    assert set(found) == {"rounds", "options", "max_turns", "rule_reach"}
    assert found["options"]["mean"][-1] > found["options"]["mean"][0] + 1


def test_a_lever_that_moves_as_another_does_is_left_out(tmp_path):
    source = "class AEnv:\n    rounds = {0}\n    max_turns = {0}\n    fixed = 3\n"
    design = {"slot": 0, "try": 0, "verdict": "accepted", "sha256": "a"}
    designs = [{**design, "step": n, "source": source.format(n)} for n in range(4)]
    (tmp_path / "designs.jsonl").write_text("".join(json.dumps(d) + "\n" for d in designs))
    (row,) = lever_series(build_cards(read_run(tmp_path)))
    assert (row["name"], row["mean"]) == ("rounds", [0, 1, 2, 3])


def test_chunks_hold_every_environment_in_order(payload, cards):
    index, chunks = payload.index, payload.chunks
    assert sum(map(len, chunks)) == len(cards) == len(index["envs"]["title"])
    first = [index["envs"]["chunk"].index(i) for i in range(len(chunks))]
    for env, home in enumerate(index["envs"]["chunk"]):
        assert chunks[home][env - first[home]]["source"] == cards[env].source
    json.dumps(index, allow_nan=False)
    json.dumps(chunks, allow_nan=False)


def test_the_map_places_accepted_environments_alone(payload):
    envs = payload.index["envs"]
    for x, y, stop in zip(envs["x"], envs["y"], envs["stop"], strict=True):
        assert (x is None) == (y is None) == bool(stop)
        assert x is None or (0 <= x <= 1 and 0 <= y <= 1)


def test_the_story_is_there(payload):
    index = payload.index
    assert "never saw" in index["headline"]["title"]
    assert {pair["skill"] for pair in index["pairs"]} == {
        "mathematical_reasoning",
        "pattern_recognition",
        "memory_recall",
    }
    for pair in index["pairs"]:
        assert pair["start"]["step"] < pair["end"]["step"]
    duel = index["duel"]
    assert duel["with"]["solved"] and not duel["without"]["solved"]
    assert duel["with"]["seed"] == duel["without"]["seed"] == duel["seed"]
    assert duel["with"]["hint"] == duel["hint"]
    assert duel["with"]["first"] == duel["without"]["first"]
    assert "Hint:" not in duel["with"]["first"]


def test_cost_is_the_last_running_total(payload):
    cost = {row["role"]: row for row in payload.index["cost"]}
    assert cost["agent"]["tokens"] == 9000 * 24
    assert set(cost) == {"agent", "designer", "hint"}


def test_funnel_adds_up(payload):
    funnel = payload.index["funnel"]
    assert funnel["accepted"] + sum(n for _, n in funnel["byCode"]) == funnel["tries"]
    assert sum(row[1] for row in funnel["byTry"]) == funnel["tries"]


def test_skills_are_compared_over_the_runs_halves(payload, cards):
    table = {row["skill"]: row for row in payload.index["skills"]}
    assert sum(row["tries"] for row in table.values()) == len(cards)
    for row in table.values():
        assert row["win"][1] > row["win"][0]
        assert row["regret"][1] < row["regret"][0]


def held(*rates, se=0.02):
    rows = [
        {"step": i, "heldout/win_rate": r, "heldout/win_rate_se": se} for i, r in enumerate(rates)
    ]
    return metric_columns(rows)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (held(0.2, 0.6), "went from 20\u00a0% to 60\u00a0%"),
        (held(0.6, 0.2), "fell from 60\u00a0% to 20\u00a0%"),
        (held(0.30, 0.33), "no measurable change"),
        (held(0.30), "no environment was played"),
        (metric_columns([{"step": 0, "agent/win_rate": 0.25}]), "The agent won 25\u00a0%"),
        (metric_columns([{"step": 0, "agent/win_rate": None}]), "no environment was played"),
        (metric_columns([{"step": i, "agent/win_rate": 0.5} for i in range(3)]), "won 50\u00a0%"),
        ({}, "no finished step"),
    ],
)
def test_the_headline_says_what_came_out(columns, words):
    assert words in headline(columns)["title"]


def test_a_change_inside_its_interval_is_called_none_however_it_points():
    wide = headline(held(0.3, 0.5, se=0.1))
    assert "no measurable change" in wide["title"]
    assert "± 28" in wide["detail"]


def test_a_fall_has_a_minus_sign_and_says_when():
    detail = headline(held(0.6, 0.2))["detail"]
    assert detail.startswith("The change is −40 points, ± 6")
    assert detail.endswith("before training and after step 1.")


def test_figures_hold_what_the_run_measured():
    labels = [figure["label"] for figure in figures(held(0.1, 0.2))]
    assert labels == ["Held-out win rate"]


def test_numbers_for_a_page():
    assert rounded(0.123456789) == 0.12346
    assert rounded(12345678) == 12345678
    assert [rounded(v) for v in (float("nan"), float("inf"), "x", None, True)] == [None] * 5


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("go", "go"),
        ({"role": "assistant", "content": "go"}, "go"),
        (
            {"content": "Hm.", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
            "Hm.\nf(a=1)",
        ),
        ([{"name": "f", "arguments": '{"a": 1}'}, {"name": "g"}], 'f({"a": 1})\ng()'),
    ],
)
def test_messages_of_every_form_are_shown(message, text):
    episode = {"arm": "unhinted", "seed": 1, "messages": [message], "observations": ["o"]}
    (turn,) = shown_episode(episode)["turns"]
    assert turn["m"] == text


def test_of_a_whole_chat_the_agents_part_is_shown():
    chat = [{"role": r, "content": r} for r in ("system", "user", "assistant", "user")]
    shown = shown_episode({"arm": "hinted", "seed": 1, "messages": chat, "rewards": [0.5]})
    assert [turn["m"] for turn in shown["turns"]] == ["assistant"]


def test_long_texts_are_cut():
    episode = {"arm": "unhinted", "seed": 1, "observations": ["x" * 50_000]}
    assert "more characters" in shown_episode(episode)["first"]
    assert len(shown_episode(episode)["first"]) < 7000
