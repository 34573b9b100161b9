"""One regeneration by itself: what `spade design` runs."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from spade_envs.commands.outputs import telling_of
from spade_train.config import RunConfig
from spade_train.errors import PolicyRefused, PolicyUnavailable
from spade_train.run_folder import RunFolder
from spade_train.running import gone_unless, quiet_threads, refuse_unreadable
from spade_train.tries import Regeneration, Try


def design(config: RunConfig, out: Path | None = None) -> tuple[RunFolder, Regeneration]:
    """Write a pool of environments into a new folder.

    Args:
        config: `environments` says how many are asked for.
        out: the folder; `runs/design-001` or the first number that is free by default.

    Raises:
        UsageError: the folder exists already.
    """
    quiet_threads()
    from spade_train.assemble import assembled

    path = out or _free_folder()
    RunFolder.refuse_taken(path, designs=True)
    refuse_unreadable(config, measures=False)
    config = config.model_copy(update={"run_dir": str(path)})
    with telling_of(path, said=out is not None):
        folder = RunFolder.create(path, config)
    console = Console(stderr=True)
    with (
        gone_unless(lambda: folder.designs.stat().st_size > 0, folder),
        folder.locked(),
        Progress(console=console, disable=not console.is_terminal) as bar,
        assembled(config, folder, warn=lambda text: console.print(f"spade: {text}")) as run,
    ):
        task = bar.add_task("designing", total=config.environments)

        def seen(attempt: Try) -> None:
            bar.update(task, advance=int(attempt.accepted))

        run.designer.on_try = seen
        try:
            made, _ = run.designer.regenerate(config, 0, run.state.memory, 0, run.learner.version)
        except (PolicyUnavailable, PolicyRefused) as error:
            # What was written was paid for: it stays, and the folder with it.
            folder.append(folder.designs, (t.to_json() for t in error.tries if not t.refused))
            raise
        run.records.regeneration(made, config)
    return folder, made


def _free_folder() -> Path:
    number = 1
    while (path := Path("runs") / f"design-{number:03d}").exists():
        number += 1
    return path
