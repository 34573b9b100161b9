"""How many environments a second the standard profile validates, and where the time goes.

Two sets: `short`, one- to four-turn environments written from a few templates with other names and
numbers each, as a small designer model writes them; and `suite`, the environments that ship::

    python benchmarks/validation.py [--json FILE] [--quick] [--jobs N]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from _short_sources import GUESS, ONE_TURN, SHELF

from spade_envs import suite
from spade_runtime.validation.batch import Settings, run_batch
from spade_runtime.validation.files import collect

TEMPLATES = (ONE_TURN, ONE_TURN, GUESS, SHELF)


def short_set(folder: Path, count: int) -> Path:
    """Write the short environments."""
    for number in range(count):
        source = TEMPLATES[number % len(TEMPLATES)].format(
            name=f"Bench{number}", low=21 + number, high=60 + 2 * number
        )
        (folder / f"bench_{number:03d}.py").write_text(source, encoding="utf-8")
    return folder


def measure(paths: list[Path], jobs: int) -> dict[str, Any]:
    """Validate files and give the figures."""
    targets = collect(paths)
    gates: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    started, first = time.perf_counter(), 0.0
    for outcome in run_batch(targets, Settings(), jobs=jobs):
        first = first or time.perf_counter() - started
        assert outcome.report is not None, outcome.error
        verdicts[outcome.report.verdict] += 1
        for gate in outcome.report.gates:
            gates[gate.gate] += gate.seconds
    seconds = time.perf_counter() - started
    # The processes and their zygotes start once; the rate is that of a warm validator.
    rate = (len(targets) - 1) / (seconds - first) if len(targets) > 1 else 1 / seconds
    return {
        "files": len(targets),
        "jobs": jobs,
        "seconds": round(seconds, 2),
        "first_seconds": round(first, 2),
        "files_per_second": round(rate, 1),
        "verdicts": dict(verdicts),
        "milliseconds_by_gate": {
            name: round(1000 * value / len(targets), 2) for name, value in gates.items()
        },
    }


def main() -> None:
    """Run both sets and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        short = short_set(Path(folder), 16 if arguments.quick else 160)
        figures["short"] = measure([short], arguments.jobs)
    paths = sorted(suite.paths().values())
    figures["suite"] = measure(paths[:4] if arguments.quick else paths, arguments.jobs)
    for name, row in figures.items():
        print(
            f"{name}: {row['files']} files, {row['files_per_second']} a second with "
            f"{row['jobs']} processes; {row['verdicts']}"
        )
        for gate, value in row["milliseconds_by_gate"].items():
            print(f"  {gate:<12} {value:8.2f} ms a file")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
