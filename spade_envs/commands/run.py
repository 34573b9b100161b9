"""`spade run`: rolls a model through environments and prints what came of it."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from spade_envs import suite
from spade_envs.agents import Agent, AgentSettings, make_agent
from spade_envs.catalogue import Found, find, hint_of
from spade_envs.commands.common import (
    add_pool,
    chosen_pool,
    encodable,
    naming,
    positive,
    seconds,
)
from spade_envs.commands.outputs import claimed
from spade_envs.commands.run_results import Row, as_json, fault_lines, own_name, table
from spade_envs.episodes import Episode, drop_cut_line, read_episodes, write_episodes
from spade_envs.rolling import episode_seeds, roll
from spade_runtime.cli import Command, add_isolation
from spade_runtime.errors import SpadeError, UsageError
from spade_runtime.sandbox import SandboxPool

_DESCRIPTION = """\
Roll a model through environments; the table gives 95 % intervals.

Exit code: 0 when all episodes were played, 1 when an environment faulted in one (those are void) or
a server gave no answer, 2 for a usage error, 3 when the sandbox can't isolate here, 130 when it was
stopped by Ctrl-C or SIGTERM: finished episodes are kept, and --resume goes on."""


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", metavar="ID", help="ids, class names, files or hashes")
    parser.add_argument("--suite", action="store_true", help="all environments of the suite")
    parser.add_argument(
        "--model",
        required=True,
        type=encodable,
        help="random, solution, text:WORDS, a server's address (http://localhost:8000/v1), "
        "a local model's directory, hf:NAME for one of a model hub, or tiny",
    )
    parser.add_argument("--model-name", type=encodable, help="the server's name of the model")
    parser.add_argument(
        "--key-variable",
        default="OPENAI_API_KEY",
        metavar="NAME",
        help="environment variable that holds the server's key",
    )
    parser.add_argument(
        "--system", type=encodable, help="what a server's model is told before it plays"
    )
    parser.add_argument("--episodes", type=positive, default=16, help="default: %(default)s")
    parser.add_argument(
        "--instances", type=positive, default=16, help="episodes side by side, default: %(default)s"
    )
    parser.add_argument("--seed", type=int, default=0, help="decides the tasks, default: 0")
    parser.add_argument("--max-turns", type=positive, help="a limit below the environment's own")
    hints = parser.add_mutually_exclusive_group()
    hints.add_argument("--hint", type=encodable, help="shown after the first observation")
    hints.add_argument(
        "--with-hint", action="store_true", help="show the hint that comes with the environment"
    )
    parser.add_argument("--temperature", type=float, default=0.6, help="default: %(default)s")
    parser.add_argument("--top-p", type=float, default=0.95, help="default: %(default)s")
    parser.add_argument(
        "--max-tokens", type=positive, default=1024, help="of one message, default: %(default)s"
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=120.0,
        help="seconds for one request to a server, default: %(default)s",
    )
    parser.add_argument(
        "--to",
        type=Path,
        metavar="FILE",
        help="where episodes go, default: runs/episodes/<model>-<number>.jsonl",
    )
    parser.add_argument("--resume", action="store_true", help="go on with the file that --to names")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    add_pool(parser)
    add_isolation(parser)


def _run(arguments: argparse.Namespace) -> int:
    found = _found(arguments)
    done = _done(arguments.to, arguments.resume)
    agent = make_agent(arguments.model, _settings(arguments))
    path = arguments.to or _free_path(agent.name)
    rows: list[Row] = []
    try:
        with (
            claimed(path, said=arguments.to is not None),
            SandboxPool(level=arguments.isolation) as pool,
            _progress() as progress,
        ):
            for one in found:
                episodes = _one(arguments, one, agent, pool, progress, path, done)
                first = episodes[0]
                name = own_name(first.id or one.path.stem, first.sha256, rows)
                rows.append(Row(name, one.path, episodes))
    except KeyboardInterrupt:
        print(f"stopped{_kept(path)}", file=sys.stderr)
        return 130
    except SpadeError:
        if kept := _kept(path):
            print(f"spade: stopped{kept}", file=sys.stderr)
        raise
    if arguments.json:
        print(as_json(path, rows))
    else:
        print(table(rows))
        for line in fault_lines(rows):
            print(line)
        print(f"episodes: {path}")
    return 1 if any(row.faults for row in rows) else 0


def _kept(path: Path) -> str:
    """How to go on with what a run that ended early had written."""
    if not path.exists():
        return ""
    return f"; finished episodes are kept. Go on with: spade run ... --to {path} --resume"


def _found(arguments: argparse.Namespace) -> list[Found]:
    pool = chosen_pool(arguments)
    names = [*arguments.ids, *(suite.names() if arguments.suite else ())]
    if not names:
        raise UsageError("name an environment, or all of the suite with --suite; see `spade list`")
    found = [find(name, pool if name in arguments.ids else None) for name in names]
    return list({one.path.resolve(): one for one in found}.values())  # each of them once


def _settings(arguments: argparse.Namespace) -> AgentSettings:
    if not 0 <= arguments.temperature < math.inf or not 0 < arguments.top_p <= 1:
        raise UsageError(
            "--temperature is a number of at least 0, and --top-p above 0 and at most 1"
        )
    return AgentSettings(
        temperature=arguments.temperature,
        top_p=arguments.top_p,
        max_tokens=arguments.max_tokens,
        model=arguments.model_name,
        key_variable=arguments.key_variable,
        concurrency=arguments.instances,
        timeout=arguments.timeout,
        system=arguments.system,
    )


def _free_path(agent: str) -> Path:
    """A file of its own for each run."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", agent).strip("-.") or "model"
    folder, number = Path("runs") / "episodes", 1
    while (path := folder / f"{stem}-{number}.jsonl").exists():
        number += 1
    return path


def _done(path: Path | None, resume: bool) -> list[Episode]:
    """Episodes that a file to go on with holds already.

    Raises:
        UsageError: the file is there and was not to be gone on with, or is no file.
    """
    if path is None:
        if resume:
            raise UsageError("--resume goes on with a file; name it with --to FILE")
        return []
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file in it, such as {path / 'run.jsonl'}")
    if not path.exists():
        if resume:
            print(f"spade: there is no {path} yet; it is begun", file=sys.stderr)
        return []
    if not resume:
        raise UsageError(f"{path} is there already; go on with it by --resume, or name another")
    if drop_cut_line(path):
        print(f"{path}: removed a last line that was cut off", file=sys.stderr)
    return list(read_episodes(path))


def _one(
    arguments: argparse.Namespace,
    found: Found,
    agent: Agent,
    pool: SandboxPool,
    progress: Progress,
    path: Path,
    done: list[Episode],
) -> list[Episode]:
    """Play what is still to be played of one environment, writing each episode as it ends."""
    count = min(arguments.instances, arguments.episodes)
    with naming(found.path):
        opened = pool.open(found.path, instances=count)
    with opened as session:
        spec = session.spec
        hint = _hint(arguments, found)
        have = {
            one.seed: one
            for one in done
            if (one.sha256, one.policy, one.hint) == (spec.sha256, agent.name, hint)
        }
        wanted = episode_seeds(arguments.episodes, arguments.seed)
        left = [seed for seed in wanted if seed not in have]
        kept = [have[seed] for seed in wanted if seed in have]
        task = progress.add_task(spec.id, total=len(wanted), completed=len(kept))

        def played() -> Iterator[Episode]:
            for episode in roll(session, agent, left, hint=hint, max_turns=arguments.max_turns):
                kept.append(episode)
                progress.advance(task)
                yield episode

        write_episodes(path, played(), append=True)
    return kept


def _hint(arguments: argparse.Namespace, found: Found) -> str | None:
    """The hint to show, if any.

    Raises:
        UsageError: the environment's own is wanted, and it has none.
    """
    if not arguments.with_hint:
        return str(arguments.hint) if arguments.hint else None
    hint = hint_of(found)
    if hint is None:
        raise UsageError(f"{found.path} comes with no hint; give one with --hint TEXT")
    return hint


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )


command = Command(
    name="run",
    summary="roll a model and print its results",
    configure=_configure,
    run=_run,
    description=_DESCRIPTION,
)
