"""The command line of the benchmarks that print a table and can write their figures as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Report = dict[str, Any]


def tell(
    description: str | None, measure: Callable[[bool], Report], table: Callable[[Report], str]
) -> None:
    """Measure, write the figures where `--json` says, and print them.

    Args:
        description: the benchmark's docstring.
        measure: takes the figures; its argument asks for fewer repetitions.
        table: shows them to a person.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions")
    arguments = parser.parse_args()
    report = measure(arguments.quick)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(table(report))
