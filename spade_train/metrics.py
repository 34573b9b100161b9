"""What a step says of itself: one line of `metrics.jsonl` (training.md section 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from spade_train.analysis import BAND, in_band
from spade_train.config import RunConfig
from spade_train.plays import Play
from spade_train.population import Design, mean_and_error
from spade_train.tries import Regeneration

# Keys that a line always has; null where the step has nothing to say.
KEYS = (
    "step",
    "seconds",
    "agent/win_rate",
    "agent/win_rate_hinted",
    "agent/return",
    "agent/groups",
    "agent/groups_equal",
    "agent/turns",
    "designer/regret",
    "designer/regret_se",
    "designer/acceptance",
    "designer/band_share",
    "designer/reward_raw",
    "designer/environments",
    "designer/hinted_share",
    "designer/duplicates",
    "heldout/win_rate",
    "heldout/win_rate_se",
    "loss/agent",
    "loss/designer",
    "kl",
    "clip_fraction",
    "importance_weight_mean",
)


def line(step: int, seconds: float, *parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole line: the fixed keys first, then what the parts add."""
    values: dict[str, Any] = dict.fromkeys(KEYS)
    values.update(step=step, seconds=round(seconds, 3))
    for part in parts:
        values.update(part)
    return values


def of_plays(plays: Sequence[Sequence[Play]], config: RunConfig) -> dict[str, Any]:
    """Return win rates, returns and faults of a step's plays, by arm."""
    ended = [play for group in plays for play in group]
    unhinted = [p for p in ended if p.group.arm == "unhinted" and p.fault is None]
    hinted = [p for p in ended if p.group.arm == "hinted" and p.fault is None]
    faults = Counter(p.fault["kind"] for p in ended if p.fault is not None)
    return {
        "agent/win_rate": _mean([float(p.solved) for p in unhinted]),
        "agent/win_rate_hinted": _mean([float(p.solved) for p in hinted]),
        "agent/return": _mean([p.value(config.return_mode) or 0.0 for p in unhinted]),
        "agent/turns": _mean([float(len(p.replies)) for p in unhinted]),
        "agent/cut": sum(p.cut for p in ended),
        "agent/plays": len(unhinted),
        "agent/plays_hinted": len(hinted),
        "agent/void": len(ended) - len(unhinted) - len(hinted),
        **{f"faults/{kind}": count for kind, count in sorted(faults.items())},
    }


def of_regeneration(regeneration: Regeneration) -> dict[str, Any]:
    """Return how a regeneration went."""
    pool = regeneration.pool
    accepted = [attempt for attempt in regeneration.tries if attempt.accepted]
    return {
        "designer/acceptance": regeneration.acceptance,
        "designer/tries": len(regeneration.tries),
        "designer/environments": len(pool),
        "designer/hinted_share": _mean([float(d.hint is not None) for d in pool]),
        "designer/duplicates": sum(a.duplicate_of is not None for a in accepted),
        "designer/judge_silent": sum(a.unjudged for a in regeneration.tries),
    }


def of_regret(pool: Sequence[Design], config: RunConfig) -> dict[str, Any]:
    """Return the mean hint regret over a pool's environments, once it was measured."""
    regrets = [design.regret(config.seed_pairing).value for design in pool]
    mean, error = mean_and_error(regrets)
    return {
        "designer/regret": mean,
        "designer/regret_se": error,
        "designer/regret_known": sum(regret is not None for regret in regrets),
    }


def of_closed_window(pool: Sequence[Design]) -> dict[str, Any]:
    """Return the share of environments in the learnable band, once their window has closed."""
    rates = [design.win_rate for design in pool]
    known = [rate for rate in rates if rate is not None]
    low, high = BAND
    return {"designer/band_share": _mean([float(in_band(r, low=low, high=high)) for r in known])}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
