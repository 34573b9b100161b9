"""`spade report RUN`: a run as one HTML file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from spade_runtime.cli import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder, such as runs/demo")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the file to write (default: RUN/report.html)"
    )
    parser.add_argument(
        "--embedding",
        choices=("tfidf", "sbert", "none"),
        help="what map and diversity compare (default: tfidf where scikit-learn is installed)",
    )


def _run(arguments: argparse.Namespace) -> int:
    from spade_train.report import write_report

    path, problems = write_report(arguments.run, arguments.out, embedder=arguments.embedding)
    for problem in problems:
        print(f"spade: {problem}", file=sys.stderr)
    print(path)
    return 0


command = Command(
    name="report",
    summary="write a run as one HTML file",
    description=(
        "Write a run as one HTML file that opens without a server or a network: its curves,\n"
        "the designs at its start and end, every environment with source, findings, hint and\n"
        "transcripts, and what it cost."
    ),
    configure=_configure,
    run=_run,
)
