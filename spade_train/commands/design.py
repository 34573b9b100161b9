"""`spade design`: the designer alone, documents in, validated environments out."""

from __future__ import annotations

import argparse
from pathlib import Path

from spade_runtime.cli import Command
from spade_train.commands import PRESETS_TOLD


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--n", type=int, default=8, metavar="N", help="environments to ask for")
    parser.add_argument("--preset", metavar="NAME", help="one of those above")
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML file of some keys")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="a new folder (default: runs/design-001 or so)"
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as model=DIR")


def _run(arguments: argparse.Namespace) -> int:
    from spade_runtime.errors import UsageError
    from spade_train.config import build
    from spade_train.presets import resolve

    if arguments.n < 1:
        raise UsageError(f"--n is at least 1, not {arguments.n}")
    config = resolve(arguments.preset, file=arguments.config, overrides=arguments.overrides)
    # Fewer environments than the preset's skills: as many skills as there are slots.
    skills = min(config.skills_per_regeneration, arguments.n)
    asked = {"environments": arguments.n, "skills_per_regeneration": skills}
    config = build({**config.model_dump(), **asked})
    from spade_train.designing import design

    folder, made = design(config, arguments.out)
    from rich.console import Console

    from spade_train.summary import funnel_table, read_lines

    console = Console()
    console.print(funnel_table(read_lines(folder.designs)))
    for environment in made.pool:
        hint = environment.hint or "-"
        console.print(
            f"{environment.sha256[:12]}  {environment.skill}: {environment.title}  (hint: {hint})",
            highlight=False,
            markup=False,
        )
    if not made.pool:
        print(f"no environment was accepted; {folder.designs} says why")
        return 1
    first = made.pool[0].sha256[:12]
    print(f"play one:        spade play {first} --pool {folder.pool}")
    print(f"list and export: spade pool ls {folder.pool}; spade pool export {folder.pool} FOLDER")
    print(folder.pool)
    return 0


command = Command(
    name="design",
    summary="the designer alone: documents in, environments out",
    description=(
        "Let the designer write environments, validate them in the sandbox, and write hints.\n"
        "The accepted ones are in OUT/pool, every try with its findings in OUT/designs.jsonl.\n\n"
        "  spade design --n 8\n"
        "  spade design --n 4 setting=tools corpus=docs.jsonl\n\n"
        f"{PRESETS_TOLD}"
        "Exit code: 0 where an environment was accepted, 1 where none was, 2 a usage error,\n"
        "3 no isolation here."
    ),
    configure=_configure,
    run=_run,
)
