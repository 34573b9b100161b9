"""`spade play`: a person plays in the terminal, or watches a policy play."""

from __future__ import annotations

import argparse
import importlib
import sys
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path

from rich.console import Console

from spade_envs.agents import make_agent
from spade_envs.catalogue import find, hint_of
from spade_envs.commands.common import (
    add_pool,
    chosen_pool,
    encodable,
    naming,
    positive,
    seed_number,
)
from spade_envs.commands.outputs import claimed
from spade_envs.episodes import write_episodes
from spade_envs.player import Player
from spade_runtime.cli import Command, add_isolation
from spade_runtime.errors import UsageError
from spade_runtime.sandbox import SandboxPool


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="an id, a class name, a file, or a hash in the pool")
    parser.add_argument("--seed", type=seed_number, default=0, help="which task (default: 0)")
    parser.add_argument(
        "--policy",
        type=encodable,
        metavar="NAME",
        help="who plays: solution, random, text:WORDS, a server's address, a local model's "
        "directory, hf:NAME for one of a model hub, or tiny",
    )
    parser.add_argument(
        "--hint", type=encodable, help="a hint; a person's default is the environment's own"
    )
    parser.add_argument("--max-turns", type=positive, help="a limit below the environment's own")
    parser.add_argument("--record", type=Path, metavar="FILE", help="add the episode to a file")
    add_pool(parser)
    add_isolation(parser)


def _run(arguments: argparse.Namespace) -> int:
    found = find(arguments.id, chosen_pool(arguments))
    agent = make_agent(arguments.policy) if arguments.policy else None
    if agent is None and sys.stdin is None:
        raise UsageError(
            "nobody can type here: standard input is closed; let a policy play with --policy"
        )
    terminal = sys.stdin is not None and sys.stdin.isatty()
    # A person asks for the hint; a policy would read it from the start, so only where it is named.
    hint = arguments.hint or (hint_of(found) if agent is None else None)
    console = Console(highlight=False)
    if terminal:
        with suppress(ImportError):  # line editing and history, where Python was built with it
            importlib.import_module("readline")
    held = claimed(arguments.record) if arguments.record else nullcontext()
    with held, SandboxPool(level=arguments.isolation) as pool, ExitStack() as stack:
        with naming(found.path):
            session = stack.enter_context(pool.open(found.path))
        player = Player(session, console, input if terminal else _unprompted)
        record = player.play(arguments.seed, agent, hint=hint, max_turns=arguments.max_turns)
        if arguments.record:
            write_episodes(arguments.record, [record.episode()], append=True)
    if arguments.record:
        console.print(f"recorded in {arguments.record}", style="dim")
    return 0 if record.fault is None else 1


def _unprompted(_: str) -> str:
    """The next line of a pipe, where a prompt would only be in the way."""
    return input()


command = Command(
    name="play",
    summary="play in the terminal, or watch a policy play",
    configure=_configure,
    run=_run,
)
