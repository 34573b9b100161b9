"""Where a stopped run goes on: from which checkpoint, and with which configuration.

What a run did lies in its checkpoints and logs, so its configuration can't change under it: half of
the run would be another one's. The number of steps can, since no step but the last looks at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spade_runtime.errors import ConfigError
from spade_train.config import RunConfig
from spade_train.state import Checkpoints

if TYPE_CHECKING:
    from spade_train.loop import Run

# Where things lie and how they are done. Of the model, its weights are compared with the run's.
FREE = frozenset(
    ("checkpoint_every", "designer_url", "isolation", "judge_url", "model", "run_dir", "workers")
)


def place_to_go_on(checkpoints: Checkpoints, config: RunConfig) -> tuple[Path, dict[str, Any]]:
    """Return the checkpoint that a run goes on from, and its document.

    With more steps than it had, a run that has ended goes on from before its last step, as if it
    had been that long from the beginning.

    Raises:
        CheckpointError: there is none, or it is damaged.
        ConfigError: the configuration is no longer that of the run.
    """
    path, document = checkpoints.newest()
    state = document["state"]
    # Checkpoints of earlier versions don't hold the configuration; one of an ended run tells steps.
    kept = state.get("config", {})
    _refuse_changes(kept, config)
    before = kept.get("steps", state["step"] if state["flushed"] else config.steps)
    if config.steps == before or state["step"] < min(config.steps, before):
        return path, document
    if config.steps < before:
        raise ConfigError(
            f"steps={config.steps}, but the run has done {state['step']} of its {before} steps: "
            f"put steps={before} back into config.yaml, or write more than {state['step']}"
        )
    earlier = [step for step in checkpoints.steps() if step < before]
    if not earlier:
        raise ConfigError(
            f"steps={config.steps}, but the run has ended after {before} and no checkpoint from "
            f"before its last step is left: put steps={before} back into config.yaml, or begin a "
            f"new run"
        )
    path = checkpoints.path(earlier[-1])
    return path, checkpoints.read(path)


def take_up(run: Run, place: Path, document: Mapping[str, Any]) -> None:
    """Put a run where a checkpoint left it, and take away what came after.

    Raises:
        CheckpointError: the checkpoint is damaged or of another model.
        UsageError: a log is shorter than the checkpoint says.
    """
    state = document["state"]
    run.state.restore(state)
    run.learner.load(place)
    run.learner.sync()
    # An ended run does nothing again, its last measurement included.
    run.records.folder.cut(document["offsets"], state["step"] + bool(state["flushed"]))
    run.records.checkpoints.drop_after(state["step"])


def _refuse_changes(kept: Mapping[str, Any], config: RunConfig) -> None:
    now = config.model_dump(mode="json")
    changed = [
        f"{key} was {kept[key]!r} and is {now[key]!r}"
        for key in sorted(kept.keys() & now.keys() - FREE - {"steps"})
        if kept[key] != now[key]
    ]
    if changed:
        raise ConfigError(
            f"config.yaml is not that of this run any more: {'; '.join(changed)}. Put it back, or "
            f"begin a new run with it (steps may change, and {', '.join(sorted(FREE))})"
        )
