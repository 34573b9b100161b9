import pytest

from spade_train.report.rules import Rule, rule_of
from spade_train.tiny.families import FAMILIES, Design, source

CASES = [(family, op) for family in FAMILIES for op in family.ops]


@pytest.mark.parametrize(("family", "op"), CASES, ids=lambda case: getattr(case, "name", None))
def test_every_variant_of_every_family_tells_its_rule(family, op):
    place = -op.amount if op.amount < 0 else op.amount + 1
    reach = {"step": abs(op.amount), "order": place, "sum": None}[op.kind]
    if family.name == "pair":
        reach = None
    for style in range(12):
        design = Design(family, op, "lamp", family.skills[0], 3, 5, 0, style)
        assert rule_of(source(design)) == Rule(family.name, op.word, reach)


def test_the_text_that_is_played_counts_not_the_title():
    text = source(Design(FAMILIES[0], FAMILIES[0].ops[0], "lamp", "x", 3, 5))
    word = FAMILIES[0].ops[0].word
    slipped = text.replace(f"The lamp {word}: 3 rounds", "The lamp ebb: 3 rounds")
    assert slipped != text
    assert rule_of(slipped).operation == word


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not python (",
        "class HopEnv(TextEnv):\n    x = (a + 2) % 10  # surge\n",
        "class ShiftEnv(X): 1",
    ],
)
def test_other_sources_tell_none(text):
    assert rule_of(text) is None
