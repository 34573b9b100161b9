"""What designs tried that they may not: counts by code of the policy, the audit and the sandbox."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

WATCHED = ("SPD1", "SPD7", "SPD8")


def security_table(
    designs: Iterable[Mapping[str, Any]], *, window: int = 16
) -> dict[int, dict[str, int]]:
    """Count the designs that show a watched code, by window of steps.

    Args:
        designs: records of `designs.jsonl`.
        window: steps in a window; a window is named by its first step.

    Returns:
        For each window the number of designs with each code (a design counts once a code).

    >>> security_table([{"step": 17, "findings": [{"code": "SPD803"}]}])
    {16: {'SPD803': 1}}
    """
    table: dict[int, dict[str, int]] = {}
    for design in designs:
        start = int(design.get("step", 0)) // window * window
        codes = {str(f.get("code")) for f in design.get("findings") or ()}
        for code in sorted(codes):
            if code.startswith(WATCHED):
                row = table.setdefault(start, {})
                row[code] = row.get(code, 0) + 1
    return table
