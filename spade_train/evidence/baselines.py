"""Rows that need no training: any option, the reference solutions, the warm start itself."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from spade_train.config import RunConfig
from spade_train.evidence.gather import dumped
from spade_train.evidence.stamps import Stamp
from spade_train.run_folder import writing

DESIGNS = 96


@dataclass(frozen=True, slots=True)
class Baselines:
    """What stands beside the trained agents on the held-out environments.

    Attributes:
        random: win rate of a player that picks any option on show.
        scripted: win rate of the reference solutions.
        warm_start: win rate of the untrained weights without hint.
        warm_start_se: its standard error over environments.
        warm_start_hinted: the same with the hint.
        designs: tries of the untrained designer.
        acceptance: share of them that the validator accepted.
    """

    random: float
    scripted: float
    warm_start: float | None
    warm_start_se: float | None
    warm_start_hinted: float | None
    designs: int
    acceptance: float


def baselines(config: RunConfig, now: Stamp, kept: Path, *, designs: int = DESIGNS) -> Baselines:
    """Measure them, or read them back where they were measured under the same hashes.

    Args:
        config: of a run of the full arm; its seed decides the plays' sampling.
        now: its stamp.
        kept: file to keep them in.
        designs: tries to ask the untrained designer for.
    """
    making = [now.config, now.weights, now.heldout, designs]
    try:
        found = json.loads(kept.read_text(encoding="utf-8"))
        if found["making"] == making:
            return Baselines(**found["values"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # there is nothing to read back: it is measured
    fresh = _measured(config, designs)
    with writing(kept):
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(dumped({"making": making, "values": asdict(fresh)}), encoding="utf-8")
    return fresh


def _measured(config: RunConfig, designs: int) -> Baselines:
    from spade_runtime.sandbox import SandboxPool
    from spade_runtime.validation import Validator
    from spade_train.assemble import load_policy
    from spade_train.running import quiet_threads
    from spade_train.tiny.measure import measure

    quiet_threads()
    with SandboxPool() as pool, Validator(pool=pool) as validator:
        asked = config.model_copy(update={"environments": designs})
        found = measure(load_policy(config), asked, pool, validator)
    return Baselines(
        random=found.random,
        scripted=found.scripted,
        warm_start=found.heldout["win_rate"],
        warm_start_se=found.heldout["win_rate_se"],
        warm_start_hinted=found.heldout["win_rate_hinted"],
        designs=found.designs,
        acceptance=found.acceptance,
    )
