"""`spade replay`: runs recorded episodes again and says where the first difference is."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from spade_envs import suite
from spade_envs.commands.common import add_pool, chosen_pool, counted
from spade_envs.commands.outputs import telling_of
from spade_envs.episodes import Episode, read_episodes
from spade_envs.export import export_episodes
from spade_envs.manifest import read_whole, source_hash
from spade_envs.pool import Pool
from spade_envs.replay import Difference, replay
from spade_runtime.cli import Command, add_isolation
from spade_runtime.errors import UsageError
from spade_runtime.sandbox import SandboxPool
from spade_runtime.validation.text import visible

BATCH = 64  # episodes of one source that are played side by side


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="JSON Lines of episodes")
    parser.add_argument(
        "--source",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a source that episodes were recorded with; may be repeated",
    )
    add_pool(parser)
    add_isolation(parser)
    parser.add_argument(
        "--export",
        type=Path,
        metavar="FILE",
        help="instead: write chat messages (.jsonl) or a table (.parquet)",
    )
    parser.add_argument("--json", action="store_true", help="for machines")


class Sources:
    """Finds a recorded source by its hash: named files, pools, the run's own pool, the suite."""

    def __init__(self, files: list[Path], pools: list[Pool]) -> None:
        self._pools = pools
        self._by_hash: dict[str, Path] = {}
        for path in [*suite.paths().values(), *files]:
            try:
                self._by_hash[source_hash(read_whole(path))] = path
            except OSError as error:
                raise UsageError(f"can't read the source {path}: {error.strerror}") from error

    def get(self, sha256: str) -> Path | str:
        """The file, or the checked text from a pool.

        Raises:
            UsageError: no one has it.
        """
        if sha256 in self._by_hash:
            return self._by_hash[sha256]
        for pool in self._pools:
            if sha256 in pool:
                return pool.source(sha256)
        raise UsageError(
            f"no source here has the hash {sha256[:16]}... that the episode was recorded with; "
            "name it with --source FILE or --pool DIR (a changed source has another hash)"
        )


def _pools(arguments: argparse.Namespace) -> list[Pool]:
    named = chosen_pool(arguments)
    beside = arguments.file.resolve().parent.parent / "pool"  # a run folder keeps its own
    found = [named] if named else []
    return found + ([Pool(beside)] if (beside / "pool.json").is_file() else [])


def _batches(episodes: Iterator[Episode]) -> Iterator[list[Episode]]:
    """Neighbouring episodes of one source, at most a batch at a time."""
    for _, group in groupby(episodes, key=lambda one: one.sha256):
        batch: list[Episode] = []
        for episode in group:
            batch.append(episode)
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch


def _run(arguments: argparse.Namespace) -> int:
    if arguments.export:
        with telling_of(arguments.export):
            count = export_episodes(read_episodes(arguments.file), arguments.export)
        print(f"{counted(count, 'episode')} in {visible(str(arguments.export), 4096)}")
        return 0
    sources = Sources(arguments.source, _pools(arguments))
    found: list[tuple[int, Episode, Difference]] = []
    count = 0
    with SandboxPool(level=arguments.isolation) as pool:
        for batch in _batches(read_episodes(arguments.file)):
            with pool.open(sources.get(batch[0].sha256), instances=len(batch)) as session:
                for episode, difference in zip(batch, replay(session, batch), strict=True):
                    count += 1
                    if difference is not None:
                        found.append((count, episode, difference))
    if not count:
        raise UsageError(f"{arguments.file} holds no episodes; name a file that `spade run` wrote")
    if arguments.json:
        rows = [{"episode": at, "seed": one.seed, **gap._asdict()} for at, one, gap in found]
        print(json.dumps({"episodes": count, "differences": rows}))
    else:
        for at, episode, gap in found[:20]:
            name = visible(episode.id or episode.sha256[:12], 120)
            print(f"episode {at} ({name}, seed {episode.seed}): {visible(gap.text(), 600)}")
        same = count - len(found)
        print(f"{same} of {count} episodes are the same bit for bit")
    return 1 if found else 0


command = Command(
    name="replay",
    summary="run recorded episodes again and find the first difference",
    configure=_configure,
    run=_run,
)
