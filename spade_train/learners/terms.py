"""Torch twins of `spade_train.loss`, with gradients; the tests hold the two together."""

from __future__ import annotations

import torch


def truncated_importance_weight(
    train_logp: torch.Tensor, rollout_logp: torch.Tensor, *, low: float = 0.0, high: float = 2.0
) -> torch.Tensor:
    """Return clamp(exp(train_logp - rollout_logp), low, high), without a gradient."""
    return (train_logp - rollout_logp).detach().exp().clamp(low, high)


def clipped_surrogate_loss(
    ratio: torch.Tensor, advantage: torch.Tensor, *, eps_low: float = 0.20, eps_high: float = 0.28
) -> torch.Tensor:
    """Return max(-ratio A, -clip(ratio, 1 - eps_low, 1 + eps_high) A) per token."""
    clipped = ratio.clamp(1.0 - eps_low, 1.0 + eps_high)
    return torch.maximum(-ratio * advantage, -clipped * advantage)


def is_clipped(
    ratio: torch.Tensor, advantage: torch.Tensor, *, eps_low: float = 0.20, eps_high: float = 0.28
) -> torch.Tensor:
    """Say where the clip binds, so that the token's surrogate has no gradient."""
    over = (ratio > 1.0 + eps_high) & (advantage > 0)
    return over | ((ratio < 1.0 - eps_low) & (advantage < 0))


def kl_k3(logp: torch.Tensor, ref_logp: torch.Tensor) -> torch.Tensor:
    """Return exp(-d) - 1 + d with d = logp - ref_logp, per token."""
    gap = logp - ref_logp
    return torch.expm1(-gap) + gap


def kept_logprobs(
    logits: torch.Tensor,
    tokens: torch.Tensor,
    kept: list[tuple[int, ...] | None] | None,
    temperature: float,
) -> torch.Tensor:
    """Return log-probabilities as the sampler saw them: at its temperature, over its kept set.

    Args:
        logits: (tokens, vocabulary).
        tokens: (tokens,), the ids that were drawn.
        kept: per token the ids that could be drawn, None for all of them.
        temperature: of the sampler, above 0.
    """
    scaled = logits.float() / temperature
    chosen = scaled.gather(1, tokens[:, None]).squeeze(1)
    if kept is None:
        return chosen - torch.logsumexp(scaled, -1)
    width = max(len(ids) if ids is not None else 1 for ids in kept)
    table = torch.full((len(kept), width), -1, dtype=torch.long)
    full = torch.tensor([ids is None for ids in kept], device=logits.device)
    for row, ids in enumerate(kept):
        if ids is not None:
            table[row, : len(ids)] = torch.tensor(ids)
    table = table.to(logits.device)
    over_kept = scaled.gather(1, table.clamp(min=0)).masked_fill(table < 0, float("-inf"))
    total = torch.logsumexp(over_kept, -1)
    if bool(full.any()):
        total = torch.where(full, torch.logsumexp(scaled, -1), total)
    return chosen - total
