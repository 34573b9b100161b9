"""The catalogue is complete, its examples show what they say, and its page is up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from spade_runtime.codes import CODES, GATES, severity
from spade_runtime.commands.explain import command, explanation, page
from spade_runtime.errors import UsageError
from spade_runtime.validation.catalogue import entries, entry
from spade_runtime.validation.judge import Judge
from spade_runtime.validation.validator import Validator

DIFFERS = {"SPD307", "SPD406", "SPD602", "SPD604"}
WARNINGS = {"SPD105", "SPD205", "SPD308", "SPD704", "SPD706"}


def test_every_code_of_the_contract_is_there() -> None:
    counts = {0: 3, 1: 5, 2: 5, 3: 8, 4: 7, 5: 7, 6: 4, 7: 6, 8: 5}
    expected = {f"SPD{family}{n:02d}" for family, top in counts.items() for n in range(1, top + 1)}
    assert set(CODES) == expected
    assert list(entries()) == list(CODES)


def test_severities_are_the_contract_s() -> None:
    for code in CODES:
        standard = "warning" if code in DIFFERS | WARNINGS else "error"
        strict = "warning" if code in WARNINGS else "error"
        assert severity(code, "standard") == severity(code, "lenient") == standard, code
        assert severity(code, "strict") == strict, code


def test_gates_are_known() -> None:
    assert all(row.gate in GATES or row.code.startswith("SPD8") for row in CODES.values())


@pytest.mark.parametrize("code", CODES)
def test_example_shows_its_code(code: str, validator: Validator) -> None:
    item = entries()[code]
    source = item.source()
    neighbours = [item.neighbour] if item.neighbour else []
    if item.policy == "off" or item.judge is not None:
        answer = item.judge or ""
        judge = Judge(lambda _: answer) if item.judge is not None else None
        with Validator(policy=item.policy, judge=judge) as own:  # type: ignore[arg-type]
            report = own.validate(source)
    else:
        report = validator.validate(source, hint=item.hint, neighbours=neighbours)
    found = {row.code: row for row in report.findings}
    assert code in found, [(row.code, row.message) for row in report.findings]
    assert found[code].severity == severity(code)
    # SPD407 and SPD305 belong to reset and step alike.
    if item.code.gate and code not in ("SPD305", "SPD407"):
        assert found[code].gate == item.code.gate
    assert report.verdict == ("accepted" if severity(code) == "warning" else "rejected")


@pytest.mark.parametrize("code", CODES)
def test_explanation_says_all_there_is(code: str) -> None:
    item = entries()[code]
    text = explanation(item)
    assert text.startswith(f"{code}: {item.code.title}")
    assert item.example.strip().splitlines()[0] in text
    assert "The mend:" in text


def test_unknown_codes_are_told_with_a_suggestion() -> None:
    assert entry("401").code.code == entry("spd401").code.code == "SPD401"
    with pytest.raises(UsageError, match="no finding code 'SPD4O1'; did you mean .*SPD401"):
        entry("SPD4O1")


def test_page_is_up_to_date(repository: Path) -> None:
    written = (repository / "docs" / "findings.md").read_text(encoding="utf-8")
    assert written == page(), "run: spade explain --markdown > docs/findings.md"


def test_command_names_itself() -> None:
    assert command.name == "explain"
