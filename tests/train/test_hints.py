import pytest

from spade_runtime.spec import Finding
from spade_train.hints import clean_hint, judge_hint, sentences


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Sum each row first.", "Sum each row first."),
        ("Hint: Sum each row first.", "Sum each row first."),
        ("**Hint:** Sum each row first.", "Sum each row first."),
        ('"Sum each row first."', "Sum each row first."),
        ('Hint: "Sum each row first."', "Sum each row first."),
        ("Hints come late: wait.", "Hints come late: wait."),
        ("“Sum each row first.”", "Sum each row first."),
        ("<think>The rule is sums.</think>\nSum each\nrow first.", "Sum each row first."),
        ("```\nSum each row first.\n```", "Sum each row first."),
        ('Say "go" before "stop".', 'Say "go" before "stop".'),
        ("The hint: look twice - then act.", "look twice - then act."),
        (
            "Add 3.5 to it, e.g. by halves. Then go! Right?",
            "Add 3.5 to it, e.g. by halves. Then go! Right?",
        ),
        ("shift by 2", "shift by 2"),
    ],
)
def test_what_surrounds_a_hint_goes(text, hint):
    assert clean_hint(text) == (hint, "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the hint is empty"),
        ("  ", "the hint is empty"),
        ("Hint:", "the hint is empty"),
        ("```\n```", "the hint is empty"),
        ("...", "the hint is empty"),
        ("<think>endless", "the hint is only thinking"),
        ("word " * 5000, "the hint has 5000 words; write fewer than 100"),
        ("x" * 100_000, "the hint has 100000 characters; write 1200 at most"),
        ("One. Two. Three. Four.", "the hint has 4 sentences; write 3 at most"),
    ],
)
def test_what_is_no_hint_is_refused_with_the_reason(text, reason):
    assert clean_hint(text) == (None, reason)


def test_a_hint_of_the_most_and_longest_words_is_one():
    longest = " ".join(["complexities"] * 91)
    assert len(longest) == 1182
    assert clean_hint(longest).text == longest


def test_sentences():
    assert len(sentences("First look. Then, i.e. Before you act, count. 3 is enough.")) == 3
    assert sentences("") == []


def test_a_leak_is_refused_with_what_the_validator_saw():
    leak = Finding(code="SPD705", severity="error", message="it names '17'", gate="hint")
    other = Finding(code="SPD704", severity="warning", message="near", gate="duplicates")
    assert judge_hint("Use a sieve.", [other]).text == "Use a sieve."
    refused = judge_hint("Say 17.", [other, leak])
    assert refused == (None, "the hint gives the answer away: it names '17'")
    assert judge_hint("", [leak]).reason == "the hint is empty"
