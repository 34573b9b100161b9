"""Everything a step depends on, in atomic checkpoints.

A checkpoint is a folder that appears whole: it is written aside, made durable, and renamed. Its
`checksums.json` names every file's SHA-256. Random streams are derived from labels, so that no
generator's state needs to be kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spade_train.errors import CheckpointError
from spade_train.ledger import Ledger
from spade_train.memory import Memory
from spade_train.objectives import Objective
from spade_train.population import Design

FORMAT = 1
KEEP = 2
CHECKSUMS = "checksums.json"
_NAME = re.compile(r"step-(\d{6,})")


@dataclass(slots=True)
class RunState:
    """What the loop carries from step to step, besides the learner's weights.

    Attributes:
        memory: of environments that were played.
        objective: what designs are paid for; some objectives remember.
        ledger: what was spent.
        step: the next step.
        designs: environments whose window is not trained yet, invalid tries among them.
        made: the step that made the pool in play.
        documents: corpus documents drawn.
        acceptance: of each regeneration whose designs wait, by the step that made them.
        flushed: whether the last windows were trained, at the run's end.
        failed_updates: updates in a row that had to be thrown away.
        config: of the run, as JSON values; what it goes on with is held against it.
    """

    memory: Memory
    objective: Objective
    ledger: Ledger
    step: int = 0
    designs: list[Design] = field(default_factory=list)
    made: int = -1
    documents: int = 0
    acceptance: dict[int, float | None] = field(default_factory=dict)
    flushed: bool = False
    failed_updates: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pool(self) -> list[Design]:
        """The environments in play."""
        return [d for d in self.designs if d.valid and d.made == self.made]

    def to_state(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "step": self.step,
            "designs": [design.to_state() for design in self.designs],
            "made": self.made,
            "documents": self.documents,
            "acceptance": [[made, share] for made, share in self.acceptance.items()],
            "flushed": self.flushed,
            "failed_updates": self.failed_updates,
            "config": dict(self.config),
            "memory": self.memory.to_state(),
            "objective": self.objective.to_state(),
            "ledger": self.ledger.to_state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what `to_state` described; the configuration stays the one that was given."""
        self.step = state["step"]
        self.designs = [Design.from_state(design) for design in state["designs"]]
        self.made = state["made"]
        self.documents = state["documents"]
        self.acceptance = dict(state["acceptance"])
        self.flushed = state["flushed"]
        self.failed_updates = state.get("failed_updates", 0)  # earlier versions didn't keep it
        self.memory = Memory.from_state(state["memory"])
        self.objective.from_state(state["objective"])
        # In place: the rollout and the designer hold the same ledger.
        self.ledger.accounts = Ledger.from_state(state["ledger"]).accounts


class Checkpoints:
    """The checkpoints of one run.

    Args:
        root: the folder `checkpoints/`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def steps(self) -> list[int]:
        """Return the steps that have one, in order; what is named otherwise is a person's own."""
        names = (_NAME.fullmatch(path.name) for path in self.root.glob("step-*") if path.is_dir())
        return sorted(int(name.group(1)) for name in names if name)

    def path(self, step: int) -> Path:
        """Return the folder of a step's checkpoint."""
        return self.root / f"step-{step:06d}"

    def save(
        self,
        step: int,
        state: Mapping[str, Any],
        offsets: Mapping[str, int],
        save_learner: Callable[[Path], None],
    ) -> Path:
        """Write one, then let go of all but the newest.

        Raises:
            OSError: it could not be written; nothing half-written is left, the older ones stay.
        """
        aside = self.root / f".writing-{step:06d}"
        shutil.rmtree(aside, ignore_errors=True)
        try:
            aside.mkdir(parents=True)
            save_learner(aside)
            document = {"format": FORMAT, "offsets": dict(offsets), "state": dict(state)}
            (aside / "state.json").write_text(json.dumps(document), encoding="utf-8")
            sums = {path.name: _sha256(path) for path in sorted(aside.iterdir())}
            (aside / CHECKSUMS).write_text(json.dumps(sums, indent=1), encoding="utf-8")
            for path in aside.iterdir():
                _sync(path)
            final = self.path(step)
            shutil.rmtree(final, ignore_errors=True)
            aside.rename(final)
            _sync(self.root)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        for old in self.steps()[:-KEEP]:
            shutil.rmtree(self.path(old), ignore_errors=True)
        return final

    def drop_after(self, step: int) -> None:
        """Remove those of later steps, which will be done again."""
        for later in self.steps():
            if later > step:
                shutil.rmtree(self.path(later))

    def newest_sound(self) -> int | None:
        """Return the step of the newest one whose files are whole, None where there is none."""
        sound = (step for step in reversed(self.steps()) if not _problem(self.path(step)))
        return next(sound, None)

    def newest(self) -> tuple[Path, dict[str, Any]]:
        """Return the newest one and its document, every file checked.

        Raises:
            CheckpointError: there is none, or it is damaged.
        """
        steps = self.steps()
        if not steps:
            raise CheckpointError(
                f"{self.root} holds no checkpoint: the run ended before its first one; begin anew "
                f"with `spade train`"
            )
        path = self.path(steps[-1])
        return path, self.read(path)

    def read(self, path: Path) -> dict[str, Any]:
        """Return the document of one checkpoint, every file checked.

        Raises:
            CheckpointError: it is damaged, or of another format.
        """
        if problem := _problem(path):
            older = [step for step in self.steps() if self.path(step).name < path.name]
            instead = f"go on from step {older[-1]}" if older else "begin anew"
            raise CheckpointError(
                f"the checkpoint {path} is damaged: {problem}; delete that folder to {instead}"
            )
        document: dict[str, Any] = json.loads((path / "state.json").read_text(encoding="utf-8"))
        if document.get("format") != FORMAT:
            raise CheckpointError(
                f"the checkpoint {path} has format {document.get('format')!r}, this version reads "
                f"{FORMAT}; resume with the version that wrote it"
            )
        return document


def _problem(path: Path) -> str:
    """Return what is wrong with a checkpoint's files, or an empty text."""
    try:
        sums = json.loads((path / CHECKSUMS).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return f"{CHECKSUMS} can't be read ({error})"
    for name, expected in sums.items():
        file = path / name
        if not file.is_file():
            return f"{name} is missing"
        if (seen := _sha256(file)) != expected:
            return f"{name} has SHA-256 {seen[:12]}, {expected[:12]} was written"
    return "" if "state.json" in sums else "state.json is missing"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
