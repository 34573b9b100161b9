"""What a run prints at its end: the acceptance funnel, win rates, regret by step."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from spade_train.analysis import acceptance_funnel
from spade_train.run_folder import RunFolder

# Long runs show this many steps, evenly spread, the first and the last among them.
SHOWN_STEPS = 16


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSONL file."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def print_summary(folder: RunFolder, console: Console | None = None) -> None:
    """Print a run's tables on stdout."""
    console = console or Console()
    steps = read_lines(folder.metrics)
    console.print(funnel_table(read_lines(folder.designs)))
    console.print(steps_table(steps))
    totals = steps[-1] if steps else {}
    spent = [f"{k.removeprefix('tokens/')} {v:,}" for k, v in totals.items() if _is_tokens(k)]
    if spent:
        console.print("tokens: " + ", ".join(spent), highlight=False)


def funnel_table(designs: Iterable[Mapping[str, Any]]) -> Table:
    """Return where designs were lost."""
    funnel = acceptance_funnel(designs)
    table = Table(title="acceptance funnel", title_justify="left")
    table.add_column("designs")
    table.add_column("count", justify="right")
    table.add_column("share", justify="right")

    def row(name: str, count: int) -> None:
        share = f"{count / funnel.tries:.0%}" if funnel.tries else "-"
        table.add_row(name, str(count), share)

    row("written", funnel.tries)
    row("with code", funnel.with_code)
    row("accepted", funnel.accepted)
    for code, count in funnel.by_code.most_common():
        row(f"stopped by {code}", count)
    return table


def steps_table(steps: Sequence[Mapping[str, Any]]) -> Table:
    """Return win rates without and with hint, and the regret, by step."""
    table = Table(title="by step", title_justify="left")
    columns = [
        ("step", "step", "d"),
        ("wins", "agent/win_rate", ".2f"),
        ("with hint", "agent/win_rate_hinted", ".2f"),
        ("regret", "designer/regret", "+.2f"),
        ("± se", "designer/regret_se", ".2f"),
        ("accepted", "designer/acceptance", ".0%"),
        ("in band", "designer/band_share", ".0%"),
        ("held out", "heldout/win_rate", ".2f"),
        ("± se", "heldout/win_rate_se", ".2f"),
        ("seconds", "seconds", ".1f"),
    ]
    for title, _, _ in columns:
        table.add_column(title, justify="right")
    for line in _spread(steps):
        values = [(line.get(key), form) for _, key, form in columns]
        table.add_row(*("-" if v is None else format(v, form) for v, form in values))
    return table


def _spread(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    if len(steps) <= SHOWN_STEPS:
        return list(steps)
    last = len(steps) - 1
    places = sorted({round(i * last / (SHOWN_STEPS - 1)) for i in range(SHOWN_STEPS)})
    return [steps[place] for place in places]


def _is_tokens(key: str) -> bool:
    return key.startswith("tokens/")
