"""`spade train`: self-play from a preset, a file and `key=value` words."""

from __future__ import annotations

import argparse
from pathlib import Path

from spade_runtime.cli import Command
from spade_train.commands import PRESETS_TOLD


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", metavar="NAME", help="one of those above")
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML file of some keys")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the resolved configuration and stop"
    )
    parser.add_argument(
        "overrides", nargs="*", metavar="key=value", help="such as seed=11 run_dir=runs/a steps=20"
    )


def _run(arguments: argparse.Namespace) -> int:
    from spade_train.presets import resolve

    config = resolve(arguments.preset, file=arguments.config, overrides=arguments.overrides)
    if arguments.dry_run:
        print(config.to_yaml(), end="")
        return 0
    from spade_train.running import begin

    return begin(config)


command = Command(
    name="train",
    summary="self-play: one model designs environments and learns in them",
    description=(
        "Train one model in two roles: it designs environments with hints, and it acts in them.\n\n"
        "  spade train --preset tiny                    on a laptop, in minutes\n"
        "  spade train --preset tiny setting=tools seed=3 run_dir=runs/tools\n"
        "  spade train --preset tiny setting=mixed      games and tool use in one run\n"
        "  spade train --preset games-4b --dry-run      print the configuration\n\n"
        f"{PRESETS_TOLD}"
        "Ctrl-C stops at the end of a step; `spade resume RUN` goes on.\n"
        "Exit code: 0 at the end, 1 a fault, 2 a usage error, 3 no isolation here, 130 stopped."
    ),
    configure=_configure,
    run=_run,
)
