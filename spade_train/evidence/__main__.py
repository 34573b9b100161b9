"""Train every arm on every seed, compare them at equal cost, write what came out.

Finished runs are never repeated; a stopped or killed one goes on from its newest checkpoint when
the same command is given again. A run that was made with another configuration, other weights or
other held-out environments than those of now is refused, or done again with --stale redo.
"""

from __future__ import annotations

import argparse
import fcntl
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from spade_runtime.errors import SpadeError, UsageError
from spade_train.analysis.embedding import SBERT_PACKAGE, Embedder, available
from spade_train.errors import RunLocked
from spade_train.evidence.arms import ARMS, FULL, Planned, plan
from spade_train.evidence.baselines import DESIGNS, baselines
from spade_train.evidence.collect import evidence_of
from spade_train.evidence.gather import RunFacts, gather
from spade_train.evidence.page import write_pages
from spade_train.evidence.progress import Progress
from spade_train.evidence.runner import run_all
from spade_train.evidence.stamps import Stamp, finished, refuse_stale, stamp_of, state_of
from spade_train.running import STOPPED


def main(words: Sequence[str] | None = None) -> int:
    """Do what the command line asks for.

    Returns:
        0 at the end, 1 where a run failed, 2 for a usage error, 130 where it was stopped.
    """
    arguments = _parser().parse_args(words)
    try:
        with _stoppable():
            return _evidence(arguments)
    except UsageError as error:
        print(f"evidence: {error}", file=sys.stderr)
        return 2
    except SpadeError as error:
        print(f"evidence: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _stopped()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m spade_train.evidence", description=__doc__)
    names = ", ".join(arm.name for arm in ARMS)
    parser.add_argument("--arms", default="", metavar="NAMES", help=f"some of: {names}")
    parser.add_argument("--seeds", default="1 2 3", metavar="NUMBERS", help="(1 2 3)")
    parser.add_argument("--steps", metavar="N", help="of each run; the preset's by default")
    parser.add_argument("--jobs", default="1", metavar="N", help="runs side by side (1)")
    parser.add_argument("--stale", choices=("refuse", "redo"), default="refuse")
    parser.add_argument("--runs", type=Path, default=Path("runs/evidence"), metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=Path("docs/evidence"), metavar="FOLDER")
    parser.add_argument("--designs", type=int, default=DESIGNS, help=argparse.SUPPRESS)
    parser.add_argument(
        "--embedding", choices=("tfidf", "sbert", "both"), help="spaces that compare designs"
    )
    parser.add_argument(
        "--pages-only", action="store_true", help="write the pages from the finished runs"
    )
    parser.add_argument("words", nargs="*", metavar="key=value", help="for every run")
    return parser


def _evidence(arguments: argparse.Namespace) -> int:
    arms = _names(arguments.arms)
    if arguments.arms.strip() and not arms:
        raise UsageError(f"--arms {arguments.arms!r} names no arm; leave it out for all of them")
    planned = plan(
        arguments.runs,
        arms=arms,
        seeds=[_number(word, "a seed", 0) for word in _names(arguments.seeds)],
        steps=_number(arguments.steps, "steps", 1) if arguments.steps else None,
        words=arguments.words,
    )
    jobs = _number(arguments.jobs, "jobs", 1)
    if arguments.pages_only and not arguments.runs.is_dir():
        raise UsageError(f"there is no folder {arguments.runs}; leave out --pages-only to begin it")
    now = {one.name: stamp_of(one.config) for one in planned}
    with _alone(arguments.runs):
        states = {one.name: state_of(one, now[one.name]) for one in planned}
        if arguments.stale == "refuse" or arguments.pages_only:
            refuse_stale(states, arguments.runs)
        if not arguments.pages_only:
            with Progress(planned) as progress:
                complete = run_all(planned, states, now, jobs=jobs, tell=progress.tell)
            if not complete:
                return _stopped()
        return _write(arguments, planned, now)


def _write(arguments: argparse.Namespace, planned: Sequence[Planned], now: dict[str, Stamp]) -> int:
    done = [one for one in planned if finished(one.folder)]
    if not done:
        raise UsageError(f"no run in {arguments.runs} is finished; leave out --pages-only")
    print("measuring what needs no training", file=sys.stderr, flush=True)
    full = next((one for one in planned if one.arm == FULL), planned[0])
    kept = arguments.runs / "baselines.json"
    base = baselines(full.config, now[full.name], kept, designs=arguments.designs)
    print(f"reading {len(done)} runs", file=sys.stderr, flush=True)
    runs: dict[str, list[RunFacts]] = {}
    for arm in ARMS:
        if own := [one for one in done if one.arm == arm.name]:
            runs[arm.name] = [gather(one) for one in own]
    evidence = evidence_of(
        runs,
        missing=[one.name for one in planned if one not in done],
        baselines=base,
        embedders=_embedders(arguments.embedding),
    )
    for path in write_pages(evidence, arguments.out):
        print(path)
    return 0


def _embedders(asked: str | None) -> list[Embedder]:
    """Return the spaces that were asked for; by default those whose packages are installed."""
    if asked is None:
        asked = (
            "both" if available("sentence_transformers") and available(SBERT_PACKAGE) else "tfidf"
        )
        if not available("sklearn"):
            return []
    choices: dict[str, list[Embedder]] = {"tfidf": ["tfidf"], "sbert": ["sbert"]}
    return choices.get(asked, ["tfidf", "sbert"])


def _names(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _number(word: str, what: str, least: int) -> int:
    # Python reads other scripts' digits too, and refuses to read thousands of them.
    if re.fullmatch(r"[0-9]{1,18}", word) is None or int(word) < least:
        raise UsageError(f"{what} must be a whole number of {least} or more, got {word!r}")
    return int(word)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let SIGINT and SIGTERM stop it alike; a shell's background job begins with SIGINT ignored."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {n: signal.signal(n, signal.default_int_handler) for n in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _alone(runs: Path) -> Iterator[None]:
    """Hold the folder of all runs; the lock goes with the process.

    Raises:
        RunLocked: another process gathers evidence there.
        UsageError: the folder can't be made.
    """
    try:
        runs.mkdir(parents=True, exist_ok=True)
        lock = (runs / "evidence.lock").open("a")
    except OSError as error:
        raise UsageError(
            f"{runs} can't be used: {error.strerror}; name another by --runs"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunLocked(f"another process gathers evidence in {runs}; wait for it") from None
        yield


def _stopped() -> int:
    print("evidence: stopped; the same command goes on", file=sys.stderr)
    return STOPPED


if __name__ == "__main__":
    raise SystemExit(main())
