import pytest

from spade_train.memory import MemoryRecord
from spade_train.prompts import (
    STYLES,
    DesignerContext,
    agent_messages,
    designer_messages,
    fit_designer_messages,
    hint_messages,
    judge_messages,
    versions,
)
from spade_train.skills import TRAINED_GAME_SKILLS, TRAINED_TOOL_SKILLS

SOURCE = "class HopEnv(TextEnv):\n    OPTIONS = 4\n    text = 'costs $5 {x}'\n"


def record(title="Hop on", win_rate=0.5, regret=0.4, source=SOURCE):
    return MemoryRecord(
        "a" * 64, title, source, "Hop.", "game", "optimization", win_rate, regret, 0.1, 3
    )


def context(**changes):
    values = {
        "kind": "game",
        "skill": "optimization",
        "document": "A mill by the river grinds $grain {daily}.",
        "exemplars": (record(),),
        "counterexamples": (record("Too easy", 0.95, 0.0), record("Too hard", 0.0, None)),
        "difficulty": "medium",
        "max_turns": 12,
    }
    return DesignerContext(**{**values, **changes})


def text(messages):
    return "\n".join(message["content"] for message in messages)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("kind", ["game", "tool_use"])
def test_every_template_renders(style, kind):
    for messages in (
        designer_messages(style, context(kind=kind)),
        hint_messages(style, kind, SOURCE, "Hop on", rejected=[("Say 4.", "it leaks")]),
        agent_messages(style, "You see $5.\n\nHint: hop.", kind=kind),
        judge_messages(SOURCE, style=style),
    ):
        assert messages[-1]["role"] == "user"
        for message in messages:
            assert set(message) == {"role", "content"}
            assert message["content"].strip() == message["content"] != ""
    assert "You see $5.\n\nHint: hop." in text(agent_messages(style, "You see $5.\n\nHint: hop."))
    assert set(versions(style)) == set(versions("full"))


@pytest.mark.parametrize("kind", ["game", "tool_use"])
def test_full_explains_the_contract(kind):
    prompt = text(designer_messages("full", context(kind=kind)))
    for word in ("optimization", "max_turns = 12", "about half of the plays", "$grain {daily}"):
        assert word in prompt
    assert 'A good one, "Hop on"' in prompt
    assert SOURCE.strip() in prompt
    assert '"Too easy": too easy: solved in 95 %' in prompt
    assert "OPTIONS = 4" in prompt
    for name in ("eval", "exec", "open"):
        assert name in prompt


def test_compact_is_short():
    messages = designer_messages("compact", context(document="word " * 500))
    assert len(text(messages).split()) < 60
    assert text(messages).count("word") == 12


@pytest.mark.parametrize("style", STYLES)
def test_leaving_a_section_out_changes_nothing_else(style):
    whole = text(designer_messages(style, context()))
    without_corpus = text(designer_messages(style, context(document=None)))
    without_memory = text(designer_messages(style, context(exemplars=(), counterexamples=())))
    assert is_subsequence_cut(whole, without_corpus)
    assert is_subsequence_cut(whole, without_memory)
    assert "mill" not in without_corpus
    assert "Hop on" not in without_memory


def is_subsequence_cut(whole, shorter):
    """Say whether taking one stretch out of `whole` gives `shorter`."""
    head = 0
    while head < len(shorter) and whole[head] == shorter[head]:
        head += 1
    tail = len(shorter) - head
    return tail == 0 or whole.endswith(shorter[-tail:])


def test_budget_drops_exemplars_then_counterexamples_then_the_document():
    full = context(
        exemplars=(record("One"), record("Two", source="x = 1\n" * 50)), document="w " * 400
    )

    def count(messages):
        return len(text(messages).split())

    size = count(designer_messages("full", full))
    messages, kept = fit_designer_messages("full", full, count, size)
    assert kept == full
    messages, kept = fit_designer_messages("full", full, count, size - 1)
    assert [r.title for r in kept.exemplars] == ["One"]
    bare = count(
        designer_messages("full", context(exemplars=(), counterexamples=(), document=None))
    )
    messages, kept = fit_designer_messages("full", full, count, bare + 150)
    assert kept.exemplars == kept.counterexamples == ()
    assert 50 <= len(kept.document.split()) < 150
    assert count(messages) <= bare + 150
    _, kept = fit_designer_messages("full", full, count, bare)
    assert kept.document is None
    with pytest.raises(ValueError, match="raise context_tokens"):
        fit_designer_messages("full", full, count, bare - 1)


def test_a_refused_hint_is_told_why():
    prompt = text(
        hint_messages("full", "game", SOURCE, "Hop on", rejected=[("Say 4.", "it leaks")])
    )
    assert 'This hint was refused: "Say 4."\nReason: it leaks.' in prompt
    assert "refused" not in text(hint_messages("full", "game", SOURCE, "Hop on"))


@pytest.mark.parametrize("skill", TRAINED_GAME_SKILLS + TRAINED_TOOL_SKILLS)
def test_the_skill_is_named(skill):
    kind = "game" if skill in TRAINED_GAME_SKILLS else "tool_use"
    for style in STYLES:
        assert skill in text(designer_messages(style, context(kind=kind, skill=skill)))
