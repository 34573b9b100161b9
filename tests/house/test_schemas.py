"""The committed schemas are the models' own, and are valid JSON Schema 2020-12."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

pytest.importorskip("torch", reason="schemas of a run need the extra `train`")

from spade_train.schema_files import drifted, main, texts

SCHEMAS = sorted((Path(__file__).parents[2] / "schemas").glob("*.json"))


def test_no_schema_has_drifted() -> None:
    assert drifted() == []


def test_a_stale_file_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in texts().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert drifted(tmp_path) == []
    (tmp_path / "tool.schema.json").write_text("{}\n", encoding="utf-8")
    (tmp_path / "stray.schema.json").write_text("{}\n", encoding="utf-8")
    assert drifted(tmp_path) == ["stray.schema.json", "tool.schema.json"]
    assert main(["--check"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.stem)
def test_each_schema_is_valid(path: Path) -> None:
    schema = json.loads(path.read_text(encoding="utf-8"))
    assert schema["$schema"].endswith("2020-12/schema")
    jsonschema.Draft202012Validator.check_schema(schema)
