"""Every key of a run is explained, and `docs/training-keys.md` says what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from spade_runtime.cli import main
from spade_train.config import RunConfig
from spade_train.config_page import COMMAND, SECTIONS, page
from spade_train.presets import PRESETS
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
