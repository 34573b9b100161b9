"""Every key of a run is explained, and `docs/training-keys.md` says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spade_runtime.cli import main
from spade_train.config import RunConfig
from spade_train.config_page import COMMAND, SECTIONS, page
from spade_train.presets import PRESETS, resolve
from spade_train.schema_files import texts

PAGE = Path(__file__).parents[2] / "docs" / "training-keys.md"


def test_every_key_has_a_meaning_in_class_and_schema() -> None:
    assert [key for key, field in RunConfig.model_fields.items() if not field.description] == []
    told = {line.split(":")[0].strip() for line in (RunConfig.__doc__ or "").splitlines()}
    assert set(RunConfig.model_fields) <= told
    schema = texts()["run-config.schema.json"]
    assert schema.count('"description"') == len(RunConfig.model_fields) + 1


def test_the_page_is_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), f"run: {COMMAND}"


def test_the_page_has_every_key_under_a_heading() -> None:
    written = page()
    assert [key for key in RunConfig.model_fields if written.count(f"\n| `{key}`") != 1] == []
    assert [title for title in SECTIONS.values() if f"\n## {title}\n" not in written] == []


@pytest.mark.parametrize("command", ["train", "design"])
def test_help_names_every_preset(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    line = capsys.readouterr().out.partition("Presets: ")[2].partition(".")[0]
    assert line.replace("(default)", "").replace(",", " ").split() == list(PRESETS)


def test_the_guide_says_what_a_step_of_a_preset_asks() -> None:
    guide = (PAGE.parent / "training.md").read_text(encoding="utf-8")
    head, *rows = guide.partition("| | `tiny`")[2].partition("\n\n")[0].splitlines()
    names = ["tiny", *(name for name in PRESETS if f"`{name}`" in head)]
    asked = []
    for name in names:
        c = resolve(name)
        slots = c.environments
        numbers = [slots, slots * c.designer_tries, slots, slots * c.group_plays]
        numbers += [slots * c.hinted_plays, c.regenerate_every, c.max_turns]
        asked.append(numbers)
    told: list[list[int]] = [[] for _ in names]
    for row in rows[1:]:
        for numbers, cell in zip(told, row.strip("| ").split(" | ")[1:], strict=True):
            numbers += [int(n) for n in re.findall(r"\d+", cell)] or [1]
    assert told == asked
