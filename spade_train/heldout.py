"""Measures the agent on environments that are never trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from spade_envs.manifest import source_hash
from spade_runtime.errors import UsageError
from spade_runtime.spec import Kind
from spade_train.config import RunConfig
from spade_train.plays import Group, Play
from spade_train.population import mean_and_error
from spade_train.rollout import Rollout
from spade_train.seeds import environment_seeds
from spade_train.trained import is_embedded


@dataclass(frozen=True, slots=True)
class Measured:
    """One held-out environment."""

    name: str
    kind: Kind
    source: str
    hint: str | None


def measure_heldout(
    rollout: Rollout,
    config: RunConfig,
    step: int,
    keep: Callable[[Sequence[Sequence[Play]]], None] = lambda _: None,
) -> dict[str, Any]:
    """Play every held-out environment without and with its hint, on the same seeds every time.

    Args:
        rollout: plays.
        config: as it holds at this step.
        step: the loop's step.
        keep: given the plays, a group an environment and arm.

    Returns:
        Win rates with their standard errors over environments, and the seconds that it took.
    """
    start = perf_counter()
    environments = heldout_environments(config)
    groups = []
    for environment in environments:
        seeds = environment_seeds(config.heldout_plays, "heldout", environment.name)
        sha256 = source_hash(environment.source)
        common = (environment.name, sha256, environment.source, environment.kind, seeds)
        groups.append(Group(*common))
        if environment.hint is not None:
            groups.append(Group(*common, environment.hint))
    played = rollout.play(groups, config.seed, "heldout", step)
    keep(played)
    rates: dict[str, list[float | None]] = {"unhinted": [], "hinted": []}
    for group in played:
        wins = [float(play.solved) for play in group if play.fault is None]
        rates[group[0].group.arm].append(sum(wins) / len(wins) if wins else None)
    mean, error = mean_and_error(rates["unhinted"])
    hinted, hinted_error = mean_and_error(rates["hinted"])
    return {
        "heldout/win_rate": mean,
        "heldout/win_rate_se": error,
        "heldout/win_rate_hinted": hinted,
        "heldout/win_rate_hinted_se": hinted_error,
        "heldout/environments": len(environments),
        "seconds_heldout": round(perf_counter() - start, 3),
    }


def heldout_environments(config: RunConfig) -> list[Measured]:
    """Return the held-out set: a folder of the user's, or what comes with the embedded policy.

    A folder holds `NAME.py` files, each with its hint in `NAME.hint.txt` where it has one, and
    a `kinds.json` that names those of tool use.

    Raises:
        UsageError: the folder holds no environments, or none was named and the model has none.
    """
    if config.heldout:
        return _of_folder(Path(config.heldout))
    if not is_embedded(config.model):
        raise UsageError(
            f"heldout_every={config.heldout_every} needs environments to measure on; name a folder "
            f"by heldout=FOLDER, or set heldout_every=0"
        )
    from spade_train.tiny.heldout import environments

    return [
        Measured(e.name, e.kind, e.source, e.hint) for e in environments() if e.kind in config.kinds
    ]


def _of_folder(folder: Path) -> list[Measured]:
    from spade_runtime.contract import read

    found = []
    for path in sorted(folder.glob("*.py")):
        source = _text(path)
        hint = path.with_suffix(".hint.txt")
        text = _text(hint).strip() if hint.is_file() else None
        try:
            kind = read(source).kind or "game"
        except SyntaxError as error:
            raise UsageError(
                f"the held-out file {path} is no Python (line {error.lineno}: {error.msg}); "
                f"`spade validate {folder}` tells more"
            ) from None
        found.append(Measured(path.stem, kind, source, text))
    if not found:
        raise UsageError(f"{folder} holds no environments (*.py) to measure on")
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the held-out file {path} can't be read: {error}; mend it or take it out of the folder"
        ) from None
