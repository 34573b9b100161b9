import random

import pytest

from spade_train.presets import resolve
from spade_train.tiny.data import (
    design_chat,
    hint_chat,
    moved,
    random_design,
    shuffled_meaning,
    theme_of,
)
from spade_train.tiny.families import BY_SKILL, FAMILIES, Design, hint, source
from spade_train.tiny.heldout import environments
from spade_train.tiny.lexicon import (
    BY_WORD,
    COLOURS,
    DIGITS,
    LETTERS,
    NEW_THEMES,
    POINTS,
    THEMES,
    rule_text,
)

BLIND_WIN_LIMIT = resolve("tiny").blind_win_limit


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_designs_of_every_family_are_sound(family, validator):
    rng = random.Random(f"sound {family.name}")
    easiest = random_design(rng, family)
    low = Design(
        family, easiest.op, "mill", family.skills[0], family.rounds[0], family.options[0]
    ).within()
    for design in [low, *(random_design(rng, family) for _ in range(5))]:
        report = validator.validate(
            source(design),
            profile="strict",
            hint=hint(design, rng),
            blind_win_limit=BLIND_WIN_LIMIT,
        )
        assert report.verdict == "accepted", (design, report.findings)
        assert report.kind == family.kind


def test_there_are_six_families_over_four_skills_with_tools():
    assert len(FAMILIES) >= 6
    assert len(BY_SKILL) >= 4
    assert any(family.kind == "tool_use" for family in FAMILIES)


def test_the_same_design_gives_the_same_source_and_styles_differ():
    rng = random.Random(4)
    design = random_design(rng, FAMILIES[0])
    assert source(design) == source(design)
    styles = {source(random_design(random.Random(n), FAMILIES[0])) for n in range(40)}
    assert len(styles) > 35


def test_hints_name_no_answer():
    answers = {*DIGITS, *LETTERS, *POINTS, *COLOURS}
    for op in BY_WORD.values():
        assert not answers & set(rule_text(op).split())


def test_a_document_lends_its_setting():
    rng = random.Random(0)
    assert theme_of("The old lighthouse and the harbour.", rng) == "harbour"
    assert theme_of("Two rivers meet.", rng) == "river"
    assert theme_of(None, rng) in THEMES


def test_levers_move_within_the_family():
    rng = random.Random(1)
    for _ in range(200):
        design = random_design(rng)
        harder, easier = moved(design, True, rng), moved(design, False, rng)
        assert harder.rounds >= design.rounds
        assert easier.rounds <= design.rounds
        for one in (harder, easier):
            assert design.family.rounds[0] <= one.rounds <= design.family.rounds[1]
            assert one.options <= design.family.options[1]


def test_scripted_words_mean_anything():
    rng = random.Random(2)
    meanings = {
        (d.op.word, d.op.amount)
        for d in (shuffled_meaning(random_design(rng, FAMILIES[0]), rng) for _ in range(400))
    }
    assert len({amount for word, amount in meanings if word == "twist"}) == 6


def test_designs_heed_skill_and_document():
    rng = random.Random(3)
    for _ in range(50):
        chat = design_chat("By the lake a crate waits.", rng)
        prompt, answer = chat.messages[-2]["content"], chat.messages[-1]["content"]
        assert "lake" in answer
        skill = prompt.split()[1]
        assert f'skill = "{skill}"' in answer


def test_hints_state_the_rule_of_their_source():
    rng = random.Random(5)
    for _ in range(50):
        chat = hint_chat(rng)
        prompt, answer = chat.messages[-2]["content"], chat.messages[-1]["content"]
        word = prompt.split('"""')[1].split(":")[0].split()[-1]
        assert f" {word} " in answer


def test_heldout_environments_are_new_and_sound(validator):
    every = environments()
    assert len(every) >= 48
    assert len({one.name for one in every}) == len(every)
    assert sum(one.new_family for one in every) >= 12
    assert sum(one.kind == "game" for one in every) >= 48
    for one in every:
        title = one.source.split('"""')[1].split()
        assert title[1] in NEW_THEMES
        assert not set(title) & set(THEMES)
        report = validator.validate(one.source, hint=one.hint, blind_win_limit=BLIND_WIN_LIMIT)
        assert report.verdict == "accepted", (one.name, report.findings)
        assert report.kind == one.kind
