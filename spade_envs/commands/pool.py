"""`spade pool`: content-addressed pools of environments."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from spade_envs.commands.common import aligned, check_skill, counted, json_rows, positive
from spade_envs.commands.outputs import telling_of
from spade_envs.pool import Pool
from spade_envs.pool_export import export_pool
from spade_envs.pool_index import Entry, Query
from spade_runtime.cli import Command, add_isolation
from spade_runtime.errors import UsageError
from spade_runtime.validation.text import visible

BAD = ("rejected", "tampered", "missing", "unreadable")


_IMPORT = """\
Validate the sources of a folder and add those that are accepted to a pool. What is in the pool
already stays as it is, so an import that was stopped is gone on with by running it again. A hint
beside a source, <stem>.hint.txt, comes along; what SHA256SUMS or checksums.json says has to hold.

Exit code: 0 when nothing was refused, 1 when something was, 2 for a usage error, 3 when the sandbox
can't isolate here."""
_LS = """\
List what is in a pool, from its index alone. A win rate and a regret are there where plays were
told to the pool, as a training run does."""


def _configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    bring = actions.add_parser(
        "import",
        help="bring a folder of sources, or a pool, into a pool",
        description=_IMPORT,
    )
    bring.add_argument("folder", type=Path, help="a folder of *.py files, or another pool")
    bring.add_argument("pool", type=Path, help="made if it is not there")
    bring.add_argument(
        "--profile",
        choices=("lenient", "standard", "strict"),
        default="standard",
        help="what the validator asks, default: %(default)s",
    )
    bring.add_argument(
        "--unchecked",
        action="store_true",
        help="do not validate; the static gates still run at each opening",
    )
    add_isolation(bring)
    ls = actions.add_parser("ls", help="list a pool", description=_LS)
    take = actions.add_parser("export", help="write a pool for other programs")
    for query in (ls, take):
        query.add_argument("pool", type=Path)
        query.add_argument("--skill", help="only this skill")
        query.add_argument("--kind", choices=("game", "tool_use"), help="only this kind")
        query.add_argument(
            "--band",
            type=_band,
            metavar="LOW..HIGH",
            help="only win rates in this range, for example 0.2..0.8",
        )
        query.add_argument("--limit", type=positive, help="at most so many")
    ls.add_argument("--json", action="store_true", help="for machines")
    take.add_argument("to", type=Path, help="a directory that is not there yet")
    take.add_argument(
        "--form",
        choices=("sources", "hf", "openenv", "verifiers"),
        default="sources",
        help="files with checksums, a Hugging Face dataset, or a package for OpenEnv or verifiers",
    )
    check = actions.add_parser("verify", help="check every hash, the index and the lock file")
    check.add_argument("pool", type=Path)
    check.add_argument(
        "--repair",
        action="store_true",
        help="clear interrupted additions and build the index again",
    )
    lock = actions.add_parser("lock", help="write pool.lock, which pins what is in the pool")
    lock.add_argument("pool", type=Path)


def _band(text: str) -> tuple[float, float]:
    low, dots, high = text.partition("..")
    try:
        band = float(low), float(high)
    except ValueError:
        band = (1.0, 0.0)
    if not dots or not 0 <= band[0] <= band[1] <= 1:
        raise argparse.ArgumentTypeError(f"expected a range in [0, 1] like 0.2..0.8, not {text!r}")
    return band


def _run(arguments: argparse.Namespace) -> int:
    does = {"import": _import, "ls": _ls, "export": _export, "verify": _verify, "lock": _lock}
    return does[arguments.action](arguments)


def _query(arguments: argparse.Namespace) -> Query:
    check_skill(arguments.skill)
    return Query(
        skill=arguments.skill, kind=arguments.kind, band=arguments.band, limit=arguments.limit
    )


def _ls(arguments: argparse.Namespace) -> int:
    pool, query = Pool(arguments.pool), _query(arguments)
    if arguments.json:
        print(json_rows(Entry._fields, pool.index.streamed(query, *Entry._fields)))
        return 0
    found = pool.index.columns(
        query, "id", "skill", "max_turns", "plays", "win_rate", "regret", "title"
    )
    if not found:
        print("nothing fits")
        return 0
    rows = [
        (
            *known,
            "-" if rate is None else f"{rate:.2f}",
            "-" if gap is None else f"{gap:+.3f}",
            text,
        )
        for *known, rate, gap, text in found
    ]
    print(aligned(rows, ("id", "skill", "turns", "plays", "win rate", "regret", "title")))
    return 0


def _import(arguments: argparse.Namespace) -> int:
    from spade_envs.pool_import import Importer, refuse_empty
    from spade_runtime.sandbox import SandboxPool
    from spade_runtime.validation import Validator

    if arguments.folder.resolve() == arguments.pool.resolve():
        raise UsageError("a pool can't be imported into itself; name another pool")
    if arguments.folder.is_file():
        raise UsageError(_one_file(arguments.folder, arguments.pool))
    if not arguments.folder.is_dir():
        raise UsageError(f"there is no folder {arguments.folder}")
    refuse_empty(arguments.folder)
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        level = arguments.isolation
        sandbox = stack.enter_context(SandboxPool(level=level))
        checker = None
        if not arguments.unchecked:
            checker = stack.enter_context(Validator(pool=sandbox, level=level))
        stack.enter_context(telling_of(arguments.pool))
        pool = Pool(arguments.pool, create=True)
        importer = Importer(pool, sandbox, checker, profile=arguments.profile)
        for one in importer.folder(arguments.folder):
            counts[one.status] += 1
            if one.status in BAD:
                print(f"{one.status}: {_shown(one.path)}: {visible(one.message, 300)}")
            elif one.message:
                print(f"{one.status} as {one.name}: {_shown(one.path)}: {visible(one.message)}")
            elif sys.stderr.isatty():
                print(f"\r{sum(counts.values())} files", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    said = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    print(f"{_shown(arguments.pool)}: {said}")
    return 1 if any(counts[status] for status in BAD) else 0


def _one_file(file: Path, pool: Path) -> str:
    return (
        f"{_shown(file)} is a file, and a folder is imported; give the file a folder of its own, "
        f"or add it in Python: spade_envs.register({_shown(file)!r}, pool={_shown(pool)!r})"
    )


def _export(arguments: argparse.Namespace) -> int:
    pool = Pool(arguments.pool)
    with telling_of(arguments.to):
        count = export_pool(pool, pool.entries(_query(arguments)), arguments.to, arguments.form)
    print(f"{counted(count, 'environment')} in {_shown(arguments.to)}")
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    pool = Pool(arguments.pool)
    problems = pool.repair() if arguments.repair else pool.verify()
    for problem in problems:
        print(f"{problem.kind}: {_shown(problem.path)}: {visible(problem.message, 400)}")
    if problems:
        mends = {"interrupted", "index"} & {problem.kind for problem in problems}
        if mends and not arguments.repair:
            print(f"mend these with: spade pool verify --repair {_shown(arguments.pool)}")
        return 1
    print(f"{_shown(arguments.pool)}: {counted(len(pool), 'environment')}, nothing wrong")
    return 0


def _shown(path: Path) -> str:
    """A path on one line: a file of a stranger may be called anything."""
    return visible(str(path), 4096)


def _lock(arguments: argparse.Namespace) -> int:
    print(_shown(Pool(arguments.pool).lock()))
    return 0


command = Command(
    name="pool",
    summary="content-addressed pools: import, ls, export, verify, lock",
    configure=_configure,
    run=_run,
)
