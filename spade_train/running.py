"""What `spade train` and `spade resume` share: run to the end, show it, write the report."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spade_envs.commands.common import counted
from spade_envs.commands.outputs import telling_of
from spade_envs.pool import MARKER, Pool
from spade_envs.pool_index import Query
from spade_runtime.errors import UsageError
from spade_train.config import RunConfig, load
from spade_train.corpus import Corpus
from spade_train.errors import RunLocked
from spade_train.heldout import heldout_environments
from spade_train.resumption import place_to_go_on, take_up
from spade_train.run_folder import RunFolder
from spade_train.state import Checkpoints

STOPPED = 130


def begin(config: RunConfig) -> int:
    """Begin a run in a new folder.

    Returns:
        The exit code: 0 at the end, 130 where it was stopped.

    Raises:
        UsageError: the folder exists already, or an input can't be read.
    """
    named = bool(config.run_dir)
    path = Path(config.run_dir) if named else _free_folder(config)
    RunFolder.refuse_taken(path)
    refuse_unreadable(config)
    config = config.model_copy(update={"run_dir": str(path)})
    with telling_of(path, said=named):
        folder = RunFolder.create(path, config)
    with gone_unless(lambda: _has_begun(folder), folder):
        return _run(folder, config, resumed=False)


def go_on(path: Path) -> int:
    """Go on with a run from its newest checkpoint.

    Raises:
        UsageError: no run, another process works in it, or its checkpoint is damaged.
    """
    folder = RunFolder.open(path)
    return _run(folder, load(folder.config_path), resumed=True)


def _run(folder: RunFolder, config: RunConfig, *, resumed: bool) -> int:
    with folder.locked():
        found = Checkpoints(folder.checkpoints)
        checkpoint = place_to_go_on(found, config) if resumed else None
        done = checkpoint[1]["state"]["step"] if checkpoint else 0
        if checkpoint and checkpoint[1]["state"]["flushed"] and done >= config.steps:
            return _finished_before(folder, config)
        _say_beginning(folder, config, done if resumed else None)
        complete = _play(folder, config, checkpoint)
    if not complete:
        print(f"spade: stopped; go on with: spade resume {folder.path}", file=sys.stderr)
        return STOPPED
    _conclude(folder)
    return 0


def _play(
    folder: RunFolder, config: RunConfig, checkpoint: tuple[Path, dict[str, Any]] | None
) -> bool:
    """Run to the end from a checkpoint, or from the start; False where it was stopped."""
    quiet_threads()
    from spade_train.assemble import assembled
    from spade_train.loop import train
    from spade_train.progress import StepProgress, stop_requests

    done = checkpoint[1]["state"]["step"] if checkpoint else 0
    with (
        stop_requests() as stop,
        StepProgress(config.steps, done) as progress,
        assembled(config, folder, watcher=progress, warn=progress.warn, should_stop=stop) as run,
    ):
        if checkpoint is None:
            run.records.checkpoint(run.state, run.learner, config, force=True)
        else:
            take_up(run, *checkpoint)
        try:
            return train(run)
        except KeyboardInterrupt:
            return False


def refuse_unreadable(config: RunConfig, *, measures: bool = True) -> None:
    """Look at everything that a run will read later, before anything of it is written.

    Args:
        config: of the run.
        measures: whether the held-out environments will be played.

    Raises:
        UsageError: the model's folder, the corpus or the held-out environments can't be read.
    """
    if config.model.startswith(("/", ".", "~")) and not Path(config.model).is_dir():
        raise UsageError(
            f"there is no model folder {config.model!r}; name a folder that holds config.json, the "
            f"weights and the tokenizer, a hub's OWNER/NAME, or tiny"
        )
    if config.use_corpus:
        Corpus.open(config.corpus, max_words=config.corpus_max_words)
    if measures and config.heldout_every:
        heldout_environments(config)


def _has_begun(folder: RunFolder) -> bool:
    """Whether a run has written what nobody wants to lose; a full disk may keep checkpoints out."""
    return any(folder.checkpoints.glob("step-*")) or folder.designs.stat().st_size > 0


@contextmanager
def gone_unless(begun: Callable[[], bool], folder: RunFolder) -> Iterator[None]:
    """Remove a new folder where its run fails before it has begun, so that nothing half stays."""
    try:
        yield
    except RunLocked:
        raise  # another process works in it
    except BaseException:
        if not begun():
            shutil.rmtree(folder.path, ignore_errors=True)
        raise


def _say_beginning(folder: RunFolder, config: RunConfig, done: int | None) -> None:
    """Say what runs where, before the minute in which the model is loaded and nothing is seen.

    Args:
        folder: of the run.
        config: of the run.
        done: steps that a resumed run has behind it, None for a new one.
    """
    if done is not None:
        news = f"going on with {folder.path} after step {done} of {config.steps}"
    else:
        news = (
            f"{folder.path}: preset {config.preset}, setting {config.setting}, model "
            f"{config.model}, {counted(config.steps, 'step')} of "
            f"{counted(config.environments, 'environment')}"
        )
    print(f"spade: {news}; loading the model", file=sys.stderr, flush=True)


def _finished_before(folder: RunFolder, config: RunConfig) -> int:
    """Say that there is nothing to go on with, and what can be done instead."""
    print(
        f"spade: {folder.path} is finished: its {counted(config.steps, 'step')} are done, nothing "
        f"was changed",
        file=sys.stderr,
    )
    # A run that was killed while it wrote its report is finished without one.
    if not folder.report.is_file():
        _write_report(folder)
    _say_next(folder)
    print(folder.report)
    return 0


def _say_next(folder: RunFolder) -> None:
    """Say what can be done with a finished run, its report apart."""
    path = folder.path
    new = f"{path}-more"
    for what, command in (
        ("play with it", f"spade run {_worth_playing(folder)} --model {path}"),
        ("more steps", f"raise steps in {path}/config.yaml, then: spade resume {path}"),
        ("train on from it", f"spade train --config {path}/config.yaml model={path} run_dir={new}"),
        ("its environments", f"spade pool ls {folder.pool} --band 0.2..0.8"),
    ):
        print(f"{what + ':':<18}{command}")


def _worth_playing(folder: RunFolder) -> str:
    """Return what `spade run` is to play: one of the run's own, in the learnable band if any."""
    if not (folder.pool / MARKER).is_file():
        return "RollingDie"
    pool = Pool(folder.pool)
    found = pool.entries(Query(band=(0.2, 0.8), limit=1)) or pool.entries(Query(limit=1))
    return f"{found[0].id} --pool {folder.pool}" if found else "RollingDie"


def _conclude(folder: RunFolder) -> None:
    """Print the tables, write the report, and say what can be done next; its path is last."""
    from spade_train.summary import print_summary

    print_summary(folder)
    _write_report(folder)
    _say_next(folder)
    print(folder.report)


def _write_report(folder: RunFolder) -> None:
    from spade_train.report import write_report

    _, problems = write_report(folder.path)
    for problem in problems:
        print(f"spade: {problem}", file=sys.stderr)


def _free_folder(config: RunConfig) -> Path:
    """Return `runs/<preset>-001` or the first number after it that is free."""
    number = 1
    while (path := Path("runs") / f"{config.preset}-{number:03d}").exists():
        number += 1
    return path


def quiet_threads() -> None:
    """Let idle compute threads sleep: the sandbox's children need the processors."""
    os.environ.setdefault("KMP_BLOCKTIME", "0")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
