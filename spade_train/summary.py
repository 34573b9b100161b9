"""What a run prints at its end: the acceptance funnel, win rates, regret by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from spade_train.analysis import acceptance_funnel
from spade_train.report.records import read_jsonl, read_run
from spade_train.run_folder import RunFolder
from spade_train.told import fixed, percent, share, signed

# Long runs show this many steps, evenly spread, the first and the last among them.
SHOWN_STEPS = 16


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSONL file; what can't be read is passed over."""
    return list(read_jsonl(path, []))


def print_summary(folder: RunFolder, console: Console | None = None) -> None:
    """Print a run's tables on stdout; lines that can't be read are left to the report to name."""
    console = console or Console()
    records = read_run(folder.path)
    steps = records.metrics
    console.print(funnel_table(records.designs))
    console.print(steps_table(steps))
    totals = steps[-1] if steps else {}
    spent = [f"{k.removeprefix('tokens/')} {v:,}" for k, v in totals.items() if _is_tokens(k, v)]
    if spent:
        console.print("tokens: " + ", ".join(spent), highlight=False)


def funnel_table(designs: Iterable[Mapping[str, Any]]) -> Table:
    """Return where designs were lost."""
    funnel = acceptance_funnel(designs)
    table = Table(title="acceptance funnel", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("designs")
    table.add_column("count", justify="right")
    table.add_column("share", justify="right")

    def row(name: str, count: int) -> None:
        table.add_row(name, str(count), percent(count / funnel.tries) if funnel.tries else "-")

    row("written", funnel.tries)
    row("with code", funnel.with_code)
    row("accepted", funnel.accepted)
    for code, count in funnel.by_code.most_common():
        row(f"stopped by {code}", count)
    return table


def steps_table(steps: Sequence[Mapping[str, Any]]) -> Table:
    """Return win rates without and with hint, and the regret, by step: at most 80 columns wide.

    Steps count from 1. Held-out environments are measured before a step, and at the run's end.
    """
    table = Table(title="by step", title_justify="left", box=SIMPLE_HEAD, collapse_padding=True)
    columns: list[tuple[str, Callable[[Mapping[str, Any]], str]]] = [
        ("wins", lambda line: _told(line, "agent/win_rate", percent)),
        ("hinted", lambda line: _told(line, "agent/win_rate_hinted", percent)),
        ("regret", lambda line: _with_error(line, "designer/regret", signed, fixed)),
        ("accepted", lambda line: _told(line, "designer/acceptance", percent)),
        ("in band", lambda line: _told(line, "designer/band_share", percent)),
        ("held out", lambda line: _with_error(line, "heldout/win_rate", _whole, percent)),
        ("seconds", lambda line: _told(line, "seconds", lambda v: fixed(v, 1))),
    ]
    lines = _spread(steps)
    told = [(title, [tell(line) for line in lines]) for title, tell in columns]
    # What no step tells, such as the held-out environments of a run without any, takes no place.
    told = [(title, cells) for title, cells in told if set(cells) != {"-"}]
    for title in ("step", *(title for title, _ in told)):
        table.add_column(title, justify="right", no_wrap=True)
    for place, line in enumerate(lines):
        number = "end" if line.get("flush") else str(line["step"] + 1)
        table.add_row(number, *(cells[place] for _, cells in told))
    return table


def _told(line: Mapping[str, Any], key: str, form: Callable[[float], str]) -> str:
    value = line.get(key)
    return form(value) if _is_number(value) else "-"


def _with_error(
    line: Mapping[str, Any],
    key: str,
    form: Callable[[float], str],
    error_form: Callable[[float], str],
) -> str:
    """Return a figure with its standard error where that is known."""
    if not _is_number(line.get(f"{key}_se")):
        return _told(line, key, error_form if form is _whole else form)
    return f"{_told(line, key, form)} ± {_told(line, f'{key}_se', error_form)}"


def _whole(value: float) -> str:
    return str(share(value))


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float)  # a damaged line may hold anything


def _spread(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    if len(steps) <= SHOWN_STEPS:
        return list(steps)
    last = len(steps) - 1
    places = sorted({round(i * last / (SHOWN_STEPS - 1)) for i in range(SHOWN_STEPS)})
    return [steps[place] for place in places]


def _is_tokens(key: str, value: Any) -> bool:
    return key.startswith("tokens/") and _is_number(value)
