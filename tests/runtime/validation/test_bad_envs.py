"""Files with one flaw each: the validator must name it, its place and what was seen.

The first line of each file is the expectation: `# CODE | line N or any | part of the message`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from spade_runtime.codes import CODES, severity
from spade_runtime.validation.validator import Validator

FOLDER = Path(__file__).parents[2] / "bad_envs"
FILES = sorted(FOLDER.glob("*.py"))
NEIGHBOUR = "neighbour"
# Codes that need a judge or a class that attacks the channel: shown by the catalogue's examples.
ELSEWHERE = {"SPD603", "SPD604", "SPD803", "SPD805"}


def expectation(file: Path) -> tuple[str, str, str]:
    first = file.read_bytes().split(b"\n", 1)[0].decode()
    code, place, message = (part.strip() for part in first.removeprefix("#").split("|"))
    return code, place, message


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_flaw_is_named(file: Path, validator: Validator) -> None:
    code, place, message = expectation(file)
    neighbours = [FOLDER / "spd704_first.py"] if code == "SPD704" and place != NEIGHBOUR else []
    report = validator.validate(file, neighbours=neighbours)
    seen = [(row.code, row.line, row.message) for row in report.findings]
    if place == NEIGHBOUR:
        assert seen == [], "the first of a pair is sound by itself"
        return
    found = [row for row in report.findings if row.code == code]
    assert found, seen
    assert message in found[0].message, seen
    if place != "any":
        assert found[0].line == int(place.removeprefix("line ")), seen
    assert report.verdict == ("accepted" if severity(code) == "warning" else "rejected"), seen
    # One flaw a file: no other error stands beside it.
    others = {row.code for row in report.findings if row.severity == "error"} - {code}
    assert not others, seen


def test_names_say_the_codes() -> None:
    for file in FILES:
        assert file.stem.startswith(expectation(file)[0].lower()), file.name


def test_every_code_has_a_file() -> None:
    covered = {expectation(file)[0] for file in FILES} | ELSEWHERE
    assert covered == set(CODES)
