"""From returns to advantages: by group for the agent, by skill for the designer (section 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spade_train.rewards import centre_by_skill

EPSILON = 1e-8


def group_advantages(rewards: ArrayLike) -> NDArray[np.float64]:
    """Return (r - mean) / (population standard deviation + 1e-8) over one group.

    All equal gives zeros exactly: such a group teaches nothing.

    >>> group_advantages([0.5, 0.5, 0.5]).tolist()
    [0.0, 0.0, 0.0]
    """
    values = np.asarray(rewards, dtype=np.float64)
    if is_equal(values):
        return np.zeros_like(values)
    return np.asarray((values - values.mean()) / (values.std() + EPSILON))


def is_equal(rewards: ArrayLike) -> bool:
    """Say whether a group's returns are all the same (counted as `agent/groups_equal`)."""
    values = np.asarray(rewards, dtype=np.float64)
    return values.size == 0 or float(np.ptp(values)) == 0.0


def agent_advantages(returns: Sequence[float | None]) -> list[float | None]:
    """Return the advantage of each unhinted play of one environment.

    Args:
        returns: each play's return, None where a fault of the environment voided it.

    Returns:
        As many values; None for a void play, and for all of them where fewer than two plays count.

    >>> agent_advantages([0.5, None, 0.5])
    [0.0, None, 0.0]
    >>> agent_advantages([1.0, None])
    [None, None]
    """
    counted = [value for value in returns if value is not None]
    if len(counted) < 2:
        return [None] * len(returns)
    advantages = iter(group_advantages(counted).tolist())
    return [None if value is None else next(advantages) for value in returns]


def designer_advantages(
    raw: Sequence[float], skills: Sequence[str], *, scale: float
) -> NDArray[np.float64]:
    """Return the designs' raw rewards centred by the mean of their skill, times `scale`.

    The scale makes up for there being many more agent samples than designs in a batch; the
    reference's rule min(50, agent samples / designer samples x interval) comes to 32.
    """
    return centre_by_skill(raw, skills) * scale
