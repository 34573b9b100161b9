"""The environments that ship: as many and as varied as promised, strict-clean, and shown truly."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from spade_envs import gallery, suite
from spade_envs.manifest import source_hash
from spade_runtime.taxonomy import GAME_SKILLS, TOOL_SKILLS
from spade_runtime.validation import Validator

NAMES = suite.names()


def test_there_are_enough_of_each_kind() -> None:
    skills = Counter(spec.skill for spec in suite.specs().values())
    assert len(NAMES) >= 24
    assert all(skills[skill] >= 3 for skill in GAME_SKILLS[:6])
    assert all(skills[skill] >= 1 for skill in (*GAME_SKILLS, *TOOL_SKILLS))
    assert sum(skills[skill] for skill in TOOL_SKILLS) >= 6


def test_class_names_follow_from_the_files() -> None:
    for name, path in suite.paths().items():
        assert f"class {name}(" in path.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_each_is_short_and_has_a_solution(name: str) -> None:
    source = suite.paths()[name].read_text()
    assert source.count("\n") < 150
    assert "    def solution(self):\n" in source


@pytest.mark.parametrize("name", NAMES)
def test_each_is_accepted_in_the_strict_profile(name: str, validator: Validator) -> None:
    report = validator.validate(suite.paths()[name], profile="strict")
    assert [(row.code, row.message) for row in report.findings] == []
    assert report.verdict == "accepted"


def test_index_and_gallery_are_what_the_environments_say(repository: Path) -> None:
    specs, episodes = gallery.build()
    mend = "run: python -m spade_envs.gallery"
    index = Path(suite.__file__).parent / "index.json"
    assert index.read_text("utf-8") == gallery.index_text(specs), mend
    folder = repository / "docs" / "gallery"
    written = {path.name: path.read_text("utf-8") for path in folder.iterdir()}
    assert written == gallery.pages(specs, episodes), mend
    assert all(episode.solved for episode in episodes.values())


def test_the_index_names_the_sources_that_are_there() -> None:
    for name, spec in suite.specs().items():
        assert spec.sha256 == source_hash(suite.paths()[name].read_bytes())
        assert spec.id == f"spade/{name.removesuffix('Env')}-v0"
