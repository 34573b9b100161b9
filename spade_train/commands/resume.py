"""`spade resume RUN`: go on with a run that was stopped or killed."""

from __future__ import annotations

import argparse
from pathlib import Path

from spade_runtime.cli import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder, such as runs/demo")


def _run(arguments: argparse.Namespace) -> int:
    from spade_train.running import go_on

    return go_on(arguments.run)


command = Command(
    name="resume",
    summary="go on with a run that was stopped",
    description=(
        "Go on with a run from its newest checkpoint. What was written after it is cut off and\n"
        "done again, so that the run ends as if it had never been broken.\n\n"
        "Exit code: as `spade train`."
    ),
    configure=_configure,
    run=_run,
)
