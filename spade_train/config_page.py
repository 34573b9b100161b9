"""Writes `docs/training-keys.md` from the configuration's fields and presets.

python -m spade_train.config_page > docs/training-keys.md
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from spade_train.config import PHASE_KEYS, RunConfig
from spade_train.presets import PRESETS, resolve

COMMAND = "python -m spade_train.config_page > docs/training-keys.md"
# Presets whose values stand in the table: the smallest, and the paper's first of each kind.
SHOWN = ("tiny", "games-4b", "tools-4b")
# Each section begins with this key.
SECTIONS: Mapping[str, str] = {
    "preset": "What is run",
    "objective": "Pay and plays",
    "learning_rate": "The update",
    "steps": "Schedule",
    "memory_capacity": "The designer's prompt",
    "designer_tries": "Designs and hints",
    "max_turns": "Limits and sampling",
    "anchor_low": "The designer's reward",
    "blind_win_limit": "Checks, phases, records",
    "lora_rank": "Adapters and replay",
    "judge_url": "The machine and others",
}
_HEAD = f"""# Every key of a run

Written by `{COMMAND}` from the code; a test
fails where the two differ.

Write `key=value` after `spade train`, or `key: value` in a file for `--config`. The columns `tiny`,
`games-4b` and `tools-4b` say what these presets give; the other presets are
{{others}}.
`spade train --preset NAME --dry-run` prints all values of any of them. A key with a * may change
during a run, by `phases`. What a slot, a pool, a window and a regret are:
[training.md](training.md)."""
_NAMES = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "`true`, `false`",
    "null": "`null`",
}
# A longer list is shown by its length.

LONG_LIST = 3


def page() -> str:
    """Return the page, as it stands in `docs/training-keys.md`."""
    others = ", ".join(f"`{name}`" for name in PRESETS if name not in SHOWN)
    return "\n".join([_HEAD.format(others=others), *_lines()]).rstrip() + "\n"


def _lines() -> Iterator[str]:
    presets = [resolve(name).model_dump(mode="json") for name in SHOWN]
    for key, schema in RunConfig.model_json_schema()["properties"].items():
        if key in SECTIONS:
            yield f"\n## {SECTIONS[key]}\n"
            yield f"| key | takes | {' | '.join(SHOWN)} | meaning |"
            yield f"| --- | --- |{' --- |' * len(SHOWN)} --- |"
        star = "*" if key in PHASE_KEYS else ""
        values = " | ".join(_shown(preset[key]) for preset in presets)
        meaning = " ".join(schema["description"].split())
        yield f"| `{key}`{star} | {_takes(schema)} | {values} | {meaning} |"


def _shown(value: Any) -> str:
    """A value as it is written on the command line; nothing for an empty one."""
    if isinstance(value, list):
        texts = [str(item) for item in value]
        return ", ".join(texts) if len(texts) <= LONG_LIST else f"{len(texts)} names"
    return value if isinstance(value, str) else json.dumps(value)


def _takes(schema: Mapping[str, Any]) -> str:
    """What a key takes, in words."""
    if "anyOf" in schema:
        return " or ".join(_takes(part) for part in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{word}`" for word in schema.get("enum", [schema.get("const")]))
    kind = schema["type"]
    if kind == "array":
        if "prefixItems" in schema:
            parts = schema["prefixItems"]
            return f"list of {len(parts)}, each a {_takes(parts[0])}"
        return "list of mappings" if schema["items"].get("type") == "object" else "list of names"
    return f"{_NAMES[kind]}{_range(schema)}"


def _range(schema: Mapping[str, Any]) -> str:
    """The limits of a number, with the space before them."""
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f" from {low} to {high}"
    first = "" if low is None else f" from {low}"
    first += "" if above is None else f" above {above}"
    return first + ("" if below is None else f" below {below}")


if __name__ == "__main__":
    print(page(), end="")
