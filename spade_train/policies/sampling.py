"""Drawing tokens: each row from a stream of its own, over a recorded kept set.

A row's uniform numbers come from SplitMix64, seeded with the row's seed: number t is a function of
(seed, t) alone. So a row draws the same whatever shares its batch, and a whole batch is one
vector operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

if TYPE_CHECKING:
    from spade_train.policies.base import Sampling

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def uniforms(seeds: npt.NDArray[np.uint64], position: int) -> npt.NDArray[np.float64]:
    """Return number `position` of each seed's stream, in [0, 1); shape (rows,)."""
    with np.errstate(over="ignore"):
        z = seeds + _GOLDEN * np.uint64(position + 1)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) / float(1 << 53)


def draw(
    logits: torch.Tensor, sampling: Sampling, numbers: npt.NDArray[np.float64]
) -> tuple[torch.Tensor, torch.Tensor, list[tuple[int, ...]] | None]:
    """Draw one token a row by inverting the distribution's cumulative sum.

    Args:
        logits: (rows, vocabulary), any float type.
        sampling: temperature and truncation.
        numbers: (rows,), uniform in [0, 1).

    Returns:
        Tokens (rows,), their log-probabilities at the temperature over the kept set (rows,), and
        the kept ids of each row, or None where all ids are kept.
    """
    logits = logits.float()
    if sampling.temperature == 0:
        tokens = logits.argmax(-1)
        return (
            tokens,
            torch.zeros_like(tokens, dtype=torch.float32),
            [(t,) for t in tokens.tolist()],
        )
    scaled = logits / sampling.temperature
    number = torch.from_numpy(numbers).to(logits.device)[:, None]
    if not sampling.restricts:
        logp = torch.log_softmax(scaled, -1)
        tokens = _invert(logp.exp(), number)
        return tokens, logp.gather(1, tokens[:, None]).squeeze(1), None
    limit = sampling.top_k or scaled.shape[-1]
    top, ids = scaled.topk(min(limit, scaled.shape[-1]), dim=-1)
    if sampling.top_p < 1:
        mass = torch.softmax(top, -1)
        # The token that reaches the mass is kept, so the likeliest always is.
        beyond = mass.cumsum(-1) - mass >= sampling.top_p
        top = top.masked_fill(beyond, float("-inf"))
    logp = torch.log_softmax(top, -1)
    place = _invert(logp.exp(), number)
    counts = torch.isfinite(top).sum(-1).tolist()
    kept = [tuple(row[:n]) for row, n in zip(ids.tolist(), counts, strict=True)]
    tokens = ids.gather(1, place[:, None]).squeeze(1)
    return tokens, logp.gather(1, place[:, None]).squeeze(1), kept


def _invert(probabilities: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
    """Return the first index whose cumulative mass exceeds the number; never one of no mass."""
    mass = probabilities.double().cumsum(-1)
    total = mass[:, -1:]
    below = torch.nextafter(total, torch.zeros_like(total))
    place = torch.searchsorted(mass, torch.minimum(number * total, below), right=True).squeeze(1)
    return place.clamp_(max=mass.shape[-1] - 1)  # no number lies below a sum that is NaN
