"""The GRPO loss in numpy: the reference that the learners' torch twins are tested against.

Per token, with `logp` the log-probability under the weights being trained, `logp_old` the same at
the batch's start, and `logp_behaviour` the sampler's (all three at the sampling temperature over
the recorded kept set, renormalised, so that the on-policy weight is 1):

    weight = clamp(exp(logp_old - logp_behaviour), 0, 2)                  no gradient
    ratio  = exp(logp - logp_old)
    loss   = weight * max(-ratio A, -clip(ratio, 1 - low, 1 + high) A) + beta * k3(logp, logp_ref)

A sample (all tokens of one episode, or of one design) counts by its token mean; the loss is the
mean over samples, episodes and designs alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def truncated_importance_weight(
    train_logp: ArrayLike, rollout_logp: ArrayLike, *, low: float = 0.0, high: float = 2.0
) -> Any:
    """Return clamp(exp(train_logp - rollout_logp), low, high): how far the sampler strayed.

    >>> truncated_importance_weight(-3.0, -4.5)
    2.0
    """
    gap = np.asarray(train_logp, dtype=np.float64) - np.asarray(rollout_logp, dtype=np.float64)
    # The upper clamp is applied to the exponent as well, so that a huge gap can't overflow.
    return _plain(np.clip(np.exp(np.minimum(gap, np.log(high))), low, high))


def clipped_surrogate_loss(
    ratio: ArrayLike, advantage: ArrayLike, *, eps_low: float = 0.20, eps_high: float = 0.28
) -> Any:
    """Return max(-ratio A, -clip(ratio, 1 - eps_low, 1 + eps_high) A).

    >>> clipped_surrogate_loss(1.5, 1.0)
    -1.28
    """
    ratios = np.asarray(ratio, dtype=np.float64)
    gains = np.asarray(advantage, dtype=np.float64)
    clipped = np.clip(ratios, 1.0 - eps_low, 1.0 + eps_high)
    return _plain(np.maximum(-ratios * gains, -clipped * gains))


def kl_k3(logp: ArrayLike, ref_logp: ArrayLike) -> Any:
    """Return exp(-d) - 1 + d with d = logp - ref_logp: an estimate of the KL, never negative.

    >>> kl_k3(0.0, 0.0)
    0.0
    """
    gap = np.asarray(logp, dtype=np.float64) - np.asarray(ref_logp, dtype=np.float64)
    return _plain(np.expm1(-gap) + gap)


def is_clipped(
    ratio: ArrayLike, advantage: ArrayLike, *, eps_low: float = 0.20, eps_high: float = 0.28
) -> Any:
    """Say where the clip binds, so that the token's surrogate has no gradient."""
    ratios = np.asarray(ratio, dtype=np.float64)
    gains = np.asarray(advantage, dtype=np.float64)
    over = (ratios > 1.0 + eps_high) & (gains > 0)
    return _plain(over | ((ratios < 1.0 - eps_low) & (gains < 0)))


def token_losses(
    logp: ArrayLike,
    logp_old: ArrayLike,
    logp_behaviour: ArrayLike,
    advantage: ArrayLike,
    *,
    logp_ref: ArrayLike | None = None,
    kl_coefficient: float = 0.0,
    eps_low: float = 0.20,
    eps_high: float = 0.28,
    weight_max: float = 2.0,
) -> Any:
    """Return the loss of each token of one sample; the arrays have the shape (tokens,)."""
    weight = truncated_importance_weight(logp_old, logp_behaviour, high=weight_max)
    ratio = np.exp(np.asarray(logp, dtype=np.float64) - np.asarray(logp_old, dtype=np.float64))
    loss = weight * clipped_surrogate_loss(ratio, advantage, eps_low=eps_low, eps_high=eps_high)
    if logp_ref is not None and kl_coefficient:
        loss = loss + kl_coefficient * kl_k3(logp, logp_ref)
    return loss


def aggregate(losses: Sequence[ArrayLike], sample_ids: Sequence[str]) -> float:
    """Return the mean over samples of each sample's token mean.

    Args:
        losses: for each row the losses of its trained tokens, shape (tokens,).
        sample_ids: for each row the episode or design it belongs to; rows of one sample (the turns
            of a thinking model) share one token mean.

    >>> aggregate([[1.0, 1.0], [4.0], [0.0]], ["a", "a", "b"])
    1.0
    """
    if len(losses) != len(sample_ids):
        raise ValueError(f"{len(losses)} rows for {len(sample_ids)} sample ids")
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    for row, sample in zip(losses, sample_ids, strict=True):
        values = np.asarray(row, dtype=np.float64)
        sums[sample] = sums.get(sample, 0.0) + float(values.sum())
        counts[sample] = counts.get(sample, 0) + values.size
    means = [sums[sample] / counts[sample] for sample in sums if counts[sample]]
    return float(np.mean(means)) if means else 0.0


def _plain(value: Any) -> Any:
    """Return a Python number where a scalar came out."""
    return value.item() if np.ndim(value) == 0 else value
