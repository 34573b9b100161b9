"""What a run was made with, by hash: a run is only as good as the things that it was begun with."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from spade_runtime.errors import ConfigError, UsageError
from spade_train.config import RunConfig, load
from spade_train.evidence.arms import Planned
from spade_train.heldout import heldout_environments
from spade_train.report.records import read_jsonl
from spade_train.run_folder import writing

State = Literal["new", "unfinished", "finished", "stale"]
# Parts of a configuration that say where a run lies and not what it does.
_PLACES = ("run_dir",)
# What tells about a model and does not run.
_TOLD = {"README.md", "recipe.json", ".gitattributes"}
_ROOMS = ("spade_runtime", "spade_envs", "spade_train")
# Named in the order in which a person would look for the difference.
COMPARED = {"config": "settings", "weights": "weights", "heldout": "held-out environments"}


@dataclass(slots=True)
class Attempt:
    """One process that worked on a run.

    Attributes:
        code: hash of the packages' source.
        seconds: how long it lived.
        cpu_seconds: of it and its children.
        exit_code: as it ended.
    """

    code: str
    seconds: float
    cpu_seconds: float
    exit_code: int


@dataclass(slots=True)
class Stamp:
    """What a run was begun with, and the processes that worked on it.

    Attributes:
        config: hash of the resolved configuration, without the folder's name.
        weights: hash of the model's files.
        heldout: hash of the held-out environments and their hints.
        attempts: in order; one that was killed together with the runner is not among them.
    """

    config: str
    weights: str
    heldout: str
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def cpu_rate(self) -> float | None:
        """CPU seconds that a second of the run costs, None where none was measured."""
        seconds = sum(attempt.seconds for attempt in self.attempts)
        return sum(a.cpu_seconds for a in self.attempts) / seconds if seconds else None

    def write(self, path: Path) -> None:
        """Write it, whole or not at all."""
        aside = path.with_name(path.name + ".part")
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            aside.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
            aside.replace(path)

    @classmethod
    def read(cls, path: Path) -> Stamp | None:
        """Read one; None where there is none or it can't be read."""
        try:
            values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            attempts = [Attempt(**attempt) for attempt in values.pop("attempts")]
            return cls(**values, attempts=attempts)
        except (OSError, ValueError, TypeError, KeyError):
            return None


def stamp_of(config: RunConfig) -> Stamp:
    """Return the stamp that a run begun now would get."""
    return Stamp(config_hash(config), weights_hash(config), heldout_hash(config))


def config_hash(config: RunConfig) -> str:
    """Return the hash of everything in a configuration that decides the run."""
    values = {k: v for k, v in config.model_dump(mode="json").items() if k not in _PLACES}
    return _digest(json.dumps(values, sort_keys=True))


def weights_hash(config: RunConfig) -> str:
    """Return the hash of a model's files; of its name where it is a model hub's."""
    if config.model == "tiny":
        from spade_train import tiny

        return _of_files(tiny.folder(), "*")
    folder = Path(config.model).expanduser()
    return _of_files(folder, "*") if folder.is_dir() else _digest(config.model)


def heldout_hash(config: RunConfig) -> str:
    """Return the hash of the held-out environments that the configuration measures on."""
    sources = [[e.name, e.kind, e.source, e.hint] for e in heldout_environments(config)]
    return _digest(json.dumps(sources))


def code_hash() -> str:
    """Return the hash of the three packages' Python sources."""
    root = Path(__file__).parents[2]
    return _digest(*(_of_files(root / room, "**/*.py") for room in _ROOMS))


def state_of(planned: Planned, now: Stamp) -> tuple[State, str]:
    """Say what is to be done about a run, and of a stale one why.

    Args:
        planned: the run.
        now: the stamp that it would get now.
    """
    if not planned.folder.exists() or not any(planned.folder.iterdir()):
        return "new", ""
    then = Stamp.read(planned.stamp)
    if then is None:
        return "stale", f"{planned.stamp.name} beside it can't be read"
    changed = changes(then, now)
    if not changed and _config_of(planned.folder) not in (now.config, None):
        changed = [COMPARED["config"]]
    if changed:
        return "stale", f"made with other {' and other '.join(changed)}"
    return ("finished" if finished(planned.folder) else "unfinished"), ""


def changes(then: Stamp, now: Stamp) -> list[str]:
    """Return in words what differs between the things that two runs are made with."""
    return [word for name, word in COMPARED.items() if getattr(then, name) != getattr(now, name)]


def _config_of(folder: Path) -> str | None:
    """Return the hash of what a run wrote down as its configuration, None before it has."""
    path = folder / "config.yaml"
    try:
        return config_hash(load(path)) if path.is_file() else None
    except ConfigError:
        return ""  # it has keys that are no longer known


def finished(folder: Path) -> bool:
    """Say whether a run has trained its last window and measured itself at the end."""
    return any(row.get("flush") for row in read_jsonl(folder / "metrics.jsonl", []))


def refuse_stale(states: dict[str, tuple[State, str]], root: Path) -> None:
    """Refuse to mix runs of different making.

    Args:
        states: name of each run -> its state and why.
        root: folder of all runs.

    Raises:
        UsageError: one is stale.
    """
    stale = [f"{name}: {why}" for name, (state, why) in states.items() if state == "stale"]
    if stale:
        raise UsageError(
            f"{len(stale)} of the runs in {root} can't stand beside those of now "
            f"({'; '.join(stale[:3])}{'; ...' if len(stale) > 3 else ''}); do them again "
            f"with STALE=redo (that deletes them), or keep them and name another folder with "
            f"RUNS=FOLDER (without make: --stale redo, --runs FOLDER)"
        )


def _of_files(folder: Path, pattern: str) -> str:
    total = sha256()
    for path in sorted(p for p in folder.glob(pattern) if p.is_file() and p.name not in _TOLD):
        with path.open("rb") as file:
            content = sha256()
            while block := file.read(1 << 20):
                content.update(block)
        total.update(f"{path.relative_to(folder)}\0{content.hexdigest()}\n".encode())
    return total.hexdigest()


def _digest(*texts: str) -> str:
    return sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
