"""The pure parts of the gates: seeds, actions, arguments, intervals, extractions, fingerprints."""

from __future__ import annotations

import json
import random
from math import isclose

import jsonschema_rs
import pytest

from spade_runtime.validation.actions import FIXED, from_text, probes, quoted, spoilt
from spade_runtime.validation.blind import game_policies, offered, wilson_lower
from spade_runtime.validation.calls import ArgumentMaker, seen_values
from spade_runtime.validation.leaks import Case, find_leak, varying_parts
from spade_runtime.validation.novelty import Seen
from spade_runtime.validation.seeds import SEED_LIMIT, SeedStream
from spade_runtime.validation.twins import TwinIndex, fingerprint, similarity


def test_seeds_come_from_the_source_and_lie_in_the_training_range() -> None:
    stream = SeedStream(b"source")
    seeds = stream.seeds("reset", 500)
    assert len(set(seeds)) == 500
    assert all(0 <= seed < SEED_LIMIT for seed in seeds)
    assert max(seeds) > SEED_LIMIT // 2
    assert seeds == SeedStream(b"source").seeds("reset", 500)
    assert seeds[:5] != SeedStream(b"source ").seeds("reset", 5)
    assert seeds[:5] != stream.seeds("blind", 5)


def test_quotes_of_all_kinds_are_read() -> None:
    text = (
        "Say 'go up', \"wait\", `look ROOM`, \u201csing\u201d or \\boxed{rest}; it's John's turn."
    )
    assert quoted(text) == ["go up", "wait", "look ROOM", "sing", "rest"]


def test_probes_hold_what_every_game_must_bear() -> None:
    said = probes(["Say 'open DOOR'. Doors: oak, iron."], ["open oak"])
    assert said[: len(FIXED)] == list(FIXED)
    for action in ("", "   ", "open oak", "open zzqx", "open", "oak", "iron"):
        assert action in said
    assert any(len(action) == 5000 and action.isdigit() for action in said)
    assert any(not action.isascii() for action in said)
    assert any(action.startswith("{") for action in said)


def test_placeholders_are_filled() -> None:
    assert "take oak" in from_text("Use 'take NAME'. Here: oak, elm.")
    assert "move 1" in from_text("Use 'move <n>'.")


def test_spoilt_actions_keep_the_verb() -> None:
    variants = spoilt("set lamp 3")
    assert {"set", "set zzqx", "set lamp", "set lamp zzqx", "set lamp 4"} <= set(variants)
    assert "set lamp 3" not in variants


TOOLS = {
    "plain": {"type": "object", "properties": {}},
    "mixed": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "on": {"type": "boolean"},
            "kind": {"type": "string", "enum": ["red", "blue"]},
            "after": {"type": ["integer", "null"], "default": None},
            "rows": {"type": "array", "items": {"type": "string"}},
            "totals": {"type": "object", "additionalProperties": {"type": "integer"}},
            "deep": {
                "type": "object",
                "properties": {"a": {"type": "array", "items": {"type": "integer"}}},
                "required": ["a"],
            },
        },
        "required": ["name", "count", "share", "on", "kind", "rows", "totals", "deep"],
        "additionalProperties": False,
    },
}


def test_made_arguments_fit_the_schema() -> None:
    maker = ArgumentMaker(TOOLS, ["Ana Silva", 17, "A-17"], random.Random(3))
    checks = {name: jsonschema_rs.validator_for(schema) for name, schema in TOOLS.items()}
    calls = [call for name in TOOLS for call in (*maker.each(name), maker.plain(name))]
    calls += [maker.any() for _ in range(200)]
    calls += maker.vary(maker.plain("mixed"))
    for name, data in calls:
        checks[name].validate(json.loads(data))
    numbers = {json.loads(data).get("count") for name, data in calls if name == "mixed"}
    assert {0, -1, 17} <= numbers
    names = {json.loads(data).get("name") for name, data in calls if name == "mixed"}
    assert {"", "Ana Silva", "zzqx"} <= names
    assert {json.loads(data).get("kind") for name, data in calls if name == "mixed"} == {
        "red",
        "blue",
    }


def test_values_are_read_off_instructions() -> None:
    found = seen_values(["Book Olu Adeyemi for '11:30' on 2031-03-06, code F12."])
    assert {"11:30", "Olu Adeyemi", "F12", "Olu"} <= set(found)


@pytest.mark.parametrize(
    ("wins", "plays", "lower"),
    [(0, 64, 0.0), (64, 64, 0.9434), (32, 64, 0.3810), (16, 64, 0.1601), (21, 64, 0.2258)],
)
def test_wilson_interval(wins: int, plays: int, lower: float) -> None:
    assert isclose(wilson_lower(wins, plays), lower, abs_tol=1e-4)


def test_battery_holds_the_contract_s_policies() -> None:
    names = {policy.name for policy in game_policies(8, ["'scan' or 'answer N'. 3 left."])}
    for part in ("empty", "constant 'yes'", "echo", "last number seen", "quoted commands in turn"):
        assert part in names
    assert "quoted command 1 until the last turn, then '0'" in names


def test_answers_on_offer_are_constants() -> None:
    assert offered(["Red, green or blue?", "Red, green or blue?"]) == ["Red", "green", "blue"]


def _numbers(text: str, count: int = 32) -> list[Case]:
    chooser = random.Random(5)
    cases = []
    for _ in range(count):
        answer = str(chooser.randint(1000, 9999))
        other = str(chooser.randint(1000, 9999))
        cases.append(Case(text.format(answer=answer, other=other), answer))
    return cases


@pytest.mark.parametrize(
    "text",
    [
        "secret={answer} noise={other}",
        "state: {{'box': {other}, 'answer': {answer}}}",
        "first {other} then {answer} is what they said",
        "[code:{answer}|tries:3]",
    ],
)
def test_answers_that_stand_in_the_text_are_found(text: str) -> None:
    leak = find_leak(_numbers(text))
    assert leak is not None
    assert leak[1] == 1.0


def test_answers_that_have_to_be_worked_out_are_none() -> None:
    assert find_leak([Case(f"{n} plus {n + 4}?", str(2 * n + 4)) for n in range(100, 140)]) is None


def test_an_option_in_a_listing_is_none() -> None:
    chooser = random.Random(8)
    names = ["otter", "lynx", "boar", "ibis"]
    cases = []
    for _ in range(64):
        shown = chooser.sample(names, 3)
        cases.append(Case(f"Who did it? {', '.join(shown)}.", chooser.choice(shown)))
    assert find_leak(cases) is None


def test_a_word_of_the_question_is_none() -> None:
    chooser = random.Random(9)
    cases = [
        Case(f"Is {chooser.randint(2, 99)} even? yes or no", chooser.choice(["yes", "no"]))
        for _ in range(64)
    ]
    assert find_leak(cases) is None


def test_the_common_beginning_is_no_answer() -> None:
    assert varying_parts(["open door 3", "open door 14"]) == ["3", "14"]
    assert varying_parts(["open", "open"]) == ["open", "open"]


def test_values_count_as_shown() -> None:
    seen = Seen("Book Ana Silva for 30 degrees, two rooms, on 2031-03-06. enum: dry")
    for value in ("Ana Silva", "silva", 30.0, -30, 2, True, None, "", "2031-03-06", "dry", 0, 1):
        assert seen.has(value), value
    for value in ("Tariq", 31, "K4711", 7.5):
        assert not seen.has(value), value
    seen.show("token K4711")
    assert seen.has("K4711")


LOOP = "class A{n}Env:\n    def step(self, {a}):\n        return sum(range({k})) + {a}\n" * 3


def test_names_and_words_are_put_aside() -> None:
    left = fingerprint(LOOP.format(n="x", a="left", k=3), "left", "1")
    right = fingerprint(LOOP.format(n="y", a="right", k=3), "right", "2")
    assert similarity(left, right) == 1.0
    index = TwinIndex([left])
    near = index.nearest(right)
    assert near is not None
    assert near[0].label == "left"


def test_other_programs_are_no_twins(sum_game: str, shelf_tools: str) -> None:
    first, second = fingerprint(sum_game, "a", "1"), fingerprint(shelf_tools, "b", "2")
    assert similarity(first, second) < 0.5
    assert TwinIndex([first]).nearest(second) is None


def test_fingerprints_take_any_text() -> None:
    for text in ("", "\x00'\"", '"""' * 999, "(" * 9000, "x" * 100_000, "'\\" * 3000):
        fingerprint(text, "odd", "0")
