import random

import pytest

from spade_runtime.authoring import (
    TextEnv,
    ToolEnv,
    Turn,
    answers_match,
    boxed,
    call,
    criterion_holds,
    instructions,
    rendered,
    tool,
)


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        ("42", 42, True),
        (" 0.50 ", "1/2", True),
        ("1,000", "1000", True),
        ("1,00", "100", False),
        ("1e3", "1000", True),
        (".5", "0.5", True),
        ("5.", "5", True),
        ("e5", "e5", True),
        ("e5", "5", False),
        ("+.e5", "1", False),
        ("1/0", "1", False),
        ("1/2/3", "1", False),
        ("The Red  Door.", "the red door", True),
        ("9" * 5000, "9" * 5000, True),
        ("9" * 5000, 7, False),
        ("٣", "3", False),
        ("", "0", False),
        ("Straße", "STRASSE", True),
        ("nan", "nan", True),
        ("1e999", "2e999", False),
    ],
)
def test_answers_match(answer, expected, same):
    assert answers_match(answer, expected) is same
    assert answers_match(expected, answer) is same


def test_answers_match_within_a_tolerance():
    assert answers_match("3.14159", "3.14", tolerance=0.01)
    assert not answers_match("3.2", "3.14", tolerance=0.01)


@pytest.mark.parametrize("text", ["", " ", "x", "9" * 5000, "\ud800", "1 2", None, 3.5, "٣"])
def test_helpers_of_games_never_raise(text):
    assert isinstance(TextEnv.words(text), list)
    assert TextEnv.integer(text) is None


def test_integers_and_words():
    assert TextEnv.integer(" +7 ") == 7
    assert TextEnv.words("Go  NORTH ") == ["go", "north"]


def test_calls_take_arguments_of_any_name():
    assert call("find", name="a", self=1) == ("find", {"name": "a", "self": 1})


def test_boxes():
    assert boxed("none") is None
    assert boxed(r"\boxed{a}\boxed{b}") == "b"


class DeskEnv(ToolEnv):
    def setup(self, rng):
        self.state = {"number": rng.randint(0, 9**9), "seen": []}

    @tool
    def look(self):
        self.state["seen"].append(1)

    def user_turns(self):
        return (Turn(f"Look {n}.", done=lambda s, n=n: s["seen"][n:]) for n in range(3))


def test_the_base_class_owns_reset():
    env = DeskEnv()
    assert env.reset(5) == ("Look 0.", {})
    assert env.state["number"] == random.Random(5).randint(0, 9**9)
    assert instructions(env) == ["Look 0.", "Look 1.", "Look 2."]
    assert criterion_holds(env, 0) is False
    env.look()
    assert criterion_holds(env, 0) is True
    assert criterion_holds(env, 1) is False
    env.reset(5)
    assert env.state["seen"] == []


@pytest.mark.parametrize(
    ("turns", "message"),
    [(["text"], "gave a str as item 1"), ([Turn("text", True)], "turn 1 has no criterion")],
)
def test_turns_that_are_none(turns, message):
    class BadEnv(ToolEnv):
        def user_turns(self):
            return turns

    with pytest.raises(TypeError, match=message):
        BadEnv().reset(1)


def test_results_are_rendered_as_text_or_json():
    assert rendered("as it is") == "as it is"
    assert rendered({"ä": [1, None, True]}) == '{"ä": [1, null, true]}'
    for value in ({1, 2}, float("nan"), object()):
        with pytest.raises(TypeError, match="neither text nor JSON"):
            rendered(value)
    loop = []
    loop.append(loop)
    with pytest.raises(TypeError, match="a tool returned a list"):
        rendered(loop)
