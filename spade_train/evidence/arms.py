"""The arms: what is compared, and each arm's runs with their resolved configurations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spade_runtime.errors import UsageError
from spade_train.config import RunConfig
from spade_train.config_checks import unknown_key
from spade_train.presets import ABLATIONS, parse_overrides, resolve

PRESET = "tiny"
# Measurements on the held-out set in a run, besides the first: curves at equal cost need points.
MEASUREMENTS = 8
# Keys that the evidence sets for each run, and the option that decides them.
_OWN = {
    "preset": f"it is always {PRESET}",
    "seed": "use --seeds",
    "heldout_every": f"each run is measured {MEASUREMENTS} times",
    "run_dir": "use --runs",
}


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to train.

    Attributes:
        name: as the command line and the folders call it.
        about: what it changes, for the table of arms.
        words: its change, as `key=value` words of `spade train`.
    """

    name: str
    about: str
    words: tuple[str, ...] = ()


FULL = "full"
FROZEN = "frozen_designer"
ARMS: tuple[Arm, ...] = (
    Arm(FULL, "the preset as it is"),
    Arm(
        "no_memory", "the designer's prompt shows no earlier environments", ("ablation=no_memory",)
    ),
    Arm("no_corpus", "the designer's prompt shows no document", ("ablation=no_corpus",)),
    Arm(
        FROZEN,
        "the designer's samples are not trained on: it keeps writing as the warm start does",
        ("ablation=frozen_designer",),
    ),
    Arm(
        "solve_rate",
        "designs are paid for their win rate alone, not for hint regret",
        ("ablation=solve_rate",),
    ),
    Arm(
        "unpaired_seeds",
        "hinted plays get seeds of their own instead of the unhinted plays' ones",
        ("seed_pairing=independent",),
    ),
)


@dataclass(frozen=True, slots=True)
class Planned:
    """One run that the evidence needs.

    Attributes:
        arm: its arm's name.
        seed: of the run.
        config: of the run, resolved.
        root: folder of all runs.
    """

    arm: str
    seed: int
    config: RunConfig
    root: Path

    @property
    def name(self) -> str:
        """Arm and seed, for people."""
        return f"{self.arm} seed {self.seed}"

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.root / self.arm / f"seed-{self.seed}"

    @property
    def stamp(self) -> Path:
        """What the run was begun with; beside its folder."""
        return self.folder.with_suffix(".json")

    @property
    def log(self) -> Path:
        """What the run printed."""
        return self.folder.with_suffix(".log")


def plan(
    root: Path,
    *,
    arms: Iterable[str] = (),
    seeds: Sequence[int] = (1, 2, 3),
    steps: int | None = None,
    words: Sequence[str] = (),
) -> list[Planned]:
    """Return the runs, seed by seed, so that a first seed of every arm comes early.

    Args:
        root: folder of all runs.
        arms: names; all where none is given.
        seeds: of the runs.
        steps: of each run; the preset's where none is given.
        words: further `key=value` words for every run.

    Raises:
        UsageError: an unknown arm, or a word that can't be, or that an arm is made of.
    """
    chosen = _chosen(arms)
    _refuse_taken(words, chosen, {} if steps is None else {"steps": "leave out --steps, or it"})
    if not seeds or len(set(seeds)) < len(seeds):
        raise UsageError(f"seeds must be different numbers, at least one, got {list(seeds)}")
    found = []
    for seed in seeds:
        for arm in chosen:
            own = [*words, *arm.words, f"seed={seed}"]
            own += [f"steps={steps}"] if steps is not None else []
            length = resolve(PRESET, overrides=own).steps
            own += [f"heldout_every={-(-length // MEASUREMENTS)}"]
            own += [f"run_dir={root / arm.name / f'seed-{seed}'}"]
            config = resolve(PRESET, overrides=own)
            found.append(Planned(arm.name, seed, config, root))
    return found


def _chosen(names: Iterable[str]) -> list[Arm]:
    asked = list(names)
    known = {arm.name: arm for arm in ARMS}
    for name in asked:
        if name not in known:
            raise UsageError(unknown_key(name, known, "arm"))
    return [arm for arm in ARMS if not asked or arm.name in asked]


def _refuse_taken(words: Sequence[str], chosen: Sequence[Arm], more: Mapping[str, str]) -> None:
    """Refuse words for every run that make one arm another, or that are overwritten anyway."""
    own = {**_OWN, **more}
    for key, value in parse_overrides(words).items():
        if key in own:
            raise UsageError(f"{key} can't be given as a word for every run: {own[key]}")
        for arm in ARMS:
            changes = _changes(arm)
            if key in changes and (arm in chosen or changes[key] == value):
                raise UsageError(
                    f"{key}={value} can't be given for every run: it is what the arm {arm.name} "
                    f"differs in; leave it out, and choose arms by --arms"
                )


def _changes(arm: Arm) -> dict[str, Any]:
    words = parse_overrides(arm.words)
    return {**words, **ABLATIONS.get(words.get("ablation", "none"), {})}
