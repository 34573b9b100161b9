"""The learnable band: environments that are neither mastered nor out of reach."""

from __future__ import annotations

from collections.abc import Sequence

BAND = (0.2, 0.8)


def in_band(win_rate: float, low: float = BAND[0], high: float = BAND[1]) -> bool:
    """Say whether a win rate lies in [low, high]."""
    return low <= win_rate <= high


def learnable_band_share(
    win_rates: Sequence[float],
    *,
    low: float = BAND[0],
    high: float = BAND[1],
    quota: int | None = None,
) -> float | None:
    """Return the share of environments whose win rate lies in the band.

    Args:
        win_rates: one for each environment that was played.
        low: lower edge, included.
        high: upper edge, included.
        quota: number of slots there were; those left empty count as outside. None divides by the
            environments that were played.

    Returns:
        The share, or None where there is nothing to divide by.

    >>> learnable_band_share([0.1, 0.5], quota=4)
    0.25
    """
    slots = len(win_rates) if quota is None else quota
    if slots == 0:
        return None
    return sum(in_band(rate, low, high) for rate in win_rates) / slots
