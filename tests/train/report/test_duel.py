import json

import pytest

from spade_train.report.cards import build_cards
from spade_train.report.duel import duel
from spade_train.report.records import read_run
from spade_train.tiny.families import BY_NAME, Design, source
from spade_train.tiny.lexicon import BY_WORD

STEPS = 9


def small_world(family, word, style=0):
    skill = BY_NAME[family].skills[0]
    return source(Design(BY_NAME[family], BY_WORD[word], "lamp", skill, 2, 4, 0, style))


class Writer:
    """Writes a run of one environment a step, whose plays are given as outcomes by seed."""

    def __init__(self, path, form="schema"):
        self.path, self.form = path, form
        self.designs = []
        (path / "episodes").mkdir()

    def step(self, step, text, outcomes, *, fault=None, turns=2):
        """Write a step; `outcomes` are pairs (solved without the hint, solved with it)."""
        sha256 = f"{step:064x}"
        name, hint = f"{step:06d}-000", f"Rule {step}."
        self.designs.append(
            {
                "step": step,
                "slot": 0,
                "try": 0,
                "verdict": "accepted",
                "skill": "recall",
                "title": f"Task {step}",
                "source": text,
                "sha256": sha256,
                "hint": hint,
            }
        )
        lines = []
        for seed, pair in enumerate(outcomes):
            for arm, solved in zip(("unhinted", "hinted"), pair, strict=True):
                common = {
                    "seed": seed,
                    "step": step,
                    "actions": ["3"] * turns,
                    "rewards": [0.0] * (turns - 1) + [float(solved)],
                    "terminated": True,
                    "truncated": False,
                    "solved": solved,
                    "fault": fault,
                }
                first = f"Seed {seed}?"
                lines.append(common | self.own(sha256, name, arm, first, hint, solved, turns))
        target = self.path / "episodes" / f"step-{step:06d}.jsonl"
        target.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        text = "".join(json.dumps(row) + "\n" for row in self.designs)
        (self.path / "designs.jsonl").write_text(text, "utf-8")

    def own(self, sha256, name, arm, first, hint, solved, turns):
        rest = ["Next?"] * (turns - 1) + ["Over."]
        if self.form == "older":
            shown = f"{first}\n\nHint: {hint}" if arm == "hinted" else first
            own = {"design": sha256, "name": name, "arm": arm, "return": float(solved)}
            return own | {"observations": [shown, *rest]}
        own = {"sha256": sha256, "name": name, "arm": arm, "max_turns": turns}
        own |= {"observations": [first, *rest], "episode_return": float(solved)}
        return own | ({"hint": hint} if arm == "hinted" else {})


def shown(path):
    records = read_run(path)
    return duel(records, build_cards(records))


FLIPS = [(False, True)] * 4
NONE = [(False, False)] * 4


@pytest.mark.parametrize("form", ["older", "schema"])
def test_a_pair_from_mid_run_in_which_the_hint_turned_a_loss(tmp_path, form):
    run = Writer(tmp_path, form)
    for step in range(STEPS):
        text = small_world("shift", "surge" if step in (0, 3, 7) else "ebb")
        won_late = [(True, True), *NONE[1:]] if step in (6, 7) else NONE
        run.step(step, text, FLIPS if step in (0, 3) else won_late)
    found = shown(tmp_path)
    assert (found["step"], found["hint"], found["regret"]) == (3, "Rule 3.", 1.0)
    assert "of the middle third" in found["rule"]
    assert found["without"]["first"] == found["with"]["first"] == "Seed 0?"
    assert (found["without"]["hint"], found["with"]["hint"]) == ("", "Rule 3.")
    assert [turn["r"] for turn in found["with"]["turns"]] == [0.0, 1.0]
    later = found["later"]
    assert (later["name"], later["thirds"]) == ("surge", [[0, 4], [0, 4], [1, 4]])
    assert (later["play"]["step"], later["play"]["solved"], later["title"]) == (7, True, "Task 7")
    assert later["play"]["arm"] == "unhinted"


def test_one_whose_hint_helps_over_all_seeds_comes_before_luck(tmp_path):
    run = Writer(tmp_path)
    lucky = [(False, True), (True, False), (True, False), (False, True)]
    for step in range(STEPS):
        run.step(step, "x", {4: lucky, 3: FLIPS}.get(step, NONE))
    assert shown(tmp_path)["step"] == 3


def test_two_to_six_turns_come_before_one(tmp_path):
    run = Writer(tmp_path)
    for step in range(STEPS):
        run.step(step, "x", FLIPS if step in (4, 5) else NONE, turns=1 if step == 4 else 3)
    assert shown(tmp_path)["step"] == 5


def test_where_the_middle_has_none_it_says_so(tmp_path):
    run = Writer(tmp_path)
    for step in range(STEPS):
        run.step(step, "x", FLIPS if step == 1 else NONE)
    found = shown(tmp_path)
    assert found["step"] == 1
    assert "its middle third has none" in found["rule"]


def test_where_no_hint_helped_it_says_so_and_shows_a_pair_all_the_same(tmp_path):
    run = Writer(tmp_path)
    for step in range(STEPS):
        run.step(step, "x", NONE)
    found = shown(tmp_path)
    assert found["step"] == 4
    assert found["rule"].startswith("No pair of plays that was kept shows a hint")
    assert found["later"]["thirds"] == [[0, 12], [0, 12], [0, 12]]
    assert "play" not in found["later"]
    assert (found["later"]["what"], found["later"]["name"]) == ("skill", "recall")


def test_faults_are_shown_only_where_there_is_nothing_else(tmp_path):
    run = Writer(tmp_path)
    for step in range(3):
        run.step(step, "x", NONE, fault={"kind": "EnvTimeout", "code": "SPD801", "message": ""})
    assert "has a fault in it" in shown(tmp_path)["rule"]
    run.step(3, "x", NONE)
    assert shown(tmp_path)["step"] == 3


def test_without_pairs_there_is_no_duel(tmp_path):
    run = Writer(tmp_path)
    run.step(0, "x", [])
    assert shown(tmp_path) is None
