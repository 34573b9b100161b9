"""Writes `schemas/` from the models, and says where a file has drifted from its model.

    python -m spade_train.schema_files --write
    python -m spade_train.schema_files --check

It lives at the end of the import arrows because it needs the models of all three packages.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from spade_envs.episodes import Episode
from spade_envs.pool_lock import PoolLock
from spade_runtime.spec import EnvSpec, ToolSpec, ValidationReport
from spade_train.config import RunConfig
from spade_train.metrics import KEYS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FOLDER = Path(__file__).parents[1] / "schemas"


def _run_metrics() -> type[BaseModel]:
    """A line of `metrics.jsonl`: the fixed keys, and whatever counters a step adds to them."""
    fields: dict[str, Any] = {}
    for key in KEYS:
        kind = int if key == "step" else float | None
        fields[key.replace("/", "_")] = (kind, Field(alias=key))
    model: type[BaseModel] = create_model(
        "RunMetrics",
        __config__=ConfigDict(extra="allow"),
        __doc__="One line of metrics.jsonl: one step of a run; null where a step has no value.",
        **fields,
    )
    return model


def models() -> dict[str, type[BaseModel]]:
    """The models by the stem of their file."""
    return {
        "env-spec": EnvSpec,
        "tool": ToolSpec,
        "validation-report": ValidationReport,
        "episode": Episode,
        "pool": PoolLock,
        "run-config": RunConfig,
        "run-metrics": _run_metrics(),
    }


def texts() -> dict[str, str]:
    """Return what each file has to hold, by file name."""
    return {
        f"{stem}.schema.json": json.dumps(
            {"$schema": DIALECT, **model.model_json_schema(by_alias=True)}, indent=2, sort_keys=True
        )
        + "\n"
        for stem, model in models().items()
    }


def drifted(folder: Path = FOLDER) -> list[str]:
    """Return the names of files that are missing, stale, or belong to no model."""
    wanted = texts()
    there = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
    return sorted(
        name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name)
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files, or check them; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m spade_train.schema_files", description=__doc__)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--write", action="store_true", help="write schemas/ anew")
    choice.add_argument("--check", action="store_true", help="exit 1 where a file has drifted")
    if parser.parse_args(argv).write:
        for name, text in texts().items():
            (FOLDER / name).write_text(text, encoding="utf-8")
        return 0
    stale = drifted()
    for name in stale:
        print(
            f"schemas/{name} has drifted from its model; write it with: make schemas",
            file=sys.stderr,
        )
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
