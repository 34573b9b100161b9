"""What `spade train` and `spade resume` share: run to the end, show it, write the report."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from spade_envs.commands.outputs import telling_of
from spade_runtime.errors import UsageError
from spade_train.config import RunConfig, load
from spade_train.corpus import Corpus
from spade_train.errors import RunLocked
from spade_train.heldout import heldout_environments
from spade_train.resumption import place_to_go_on, take_up
from spade_train.run_folder import RunFolder

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
    quiet_threads()
    from spade_train.assemble import assembled
    from spade_train.loop import train
    from spade_train.progress import StepProgress, stop_requests
    from spade_train.state import Checkpoints

    with folder.locked(), stop_requests() as stop:
        found = Checkpoints(folder.checkpoints)
        checkpoint = place_to_go_on(found, config) if resumed else None
        done = checkpoint[1]["state"]["step"] if checkpoint else 0
        with (
            StepProgress(config.steps, done) as progress,
            assembled(
                config, folder, watcher=progress, warn=progress.warn, should_stop=stop
            ) as run,
        ):
            if checkpoint is None:
                run.records.checkpoint(run.state, run.learner, config, force=True)
            else:
                take_up(run, *checkpoint)
            try:
                complete = train(run)
            except KeyboardInterrupt:
                complete = False
    if not complete:
        print(f"spade: stopped; go on with: spade resume {folder.path}", file=sys.stderr)
        return STOPPED
    _conclude(folder)
    return 0


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


def _conclude(folder: RunFolder) -> None:
    """Print the tables and write the report; its path is the last line."""
    from spade_train.report import write_report
    from spade_train.summary import print_summary

    print_summary(folder)
    path, problems = write_report(folder.path)
    for problem in problems:
        print(f"spade: {problem}", file=sys.stderr)
    print(path)


def _free_folder(config: RunConfig) -> Path:
    """Return `runs/<preset>-001` or the first number after it that is free."""
    number = 1
    while (path := Path("runs") / f"{config.preset}-{number:03d}").exists():
        number += 1
    return path


def quiet_threads() -> None:
    """Let idle compute threads sleep: the sandbox's children need the processors.

    The bars that `transformers` draws while it loads would only garble the run's own.
    """
    os.environ.setdefault("KMP_BLOCKTIME", "0")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from transformers.utils import logging

    logging.disable_progress_bar()
