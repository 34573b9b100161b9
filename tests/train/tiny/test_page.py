"""The code of `docs/tiny.md` loads what ships, and the page's numbers are its own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from spade_train import tiny

PAGE = (Path(__file__).parents[3] / "docs" / "tiny.md").read_text(encoding="utf-8")


def test_the_code_of_the_page_loads_the_weights() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)
    recipe = json.loads((tiny.folder() / "recipe.json").read_text(encoding="utf-8"))
    assert sum(p.numel() for p in names["model"].parameters()) == recipe["parameters"]
    assert f"{recipe['parameters'] / 1e6:.3f} million parameters" in PAGE
    assert f"{recipe['recipe']['steps']:,} training steps" in PAGE
    text = "The mill ebb 3."
    assert names["tokenizer"].decode(names["tokenizer"](text)["input_ids"]).strip() == text
