"""The GRPO loss of rows and its gradient (training.md section 3), on one copy of the weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from spade_train.learners.adapters import has_adapters
from spade_train.learners.base import ROLES, Role, TrainRow
from spade_train.learners.terms import (
    clipped_surrogate_loss,
    is_clipped,
    kept_logprobs,
    kl_k3,
    truncated_importance_weight,
)


def _by_role(value: float) -> Any:
    return field(default_factory=lambda: dict.fromkeys(ROLES, value))


@dataclass(frozen=True, slots=True)
class LearnerSettings:
    """Numbers of the update.

    Attributes:
        learning_rate: constant, by role; `shared` uses the agent's.
        betas: Adam's.
        weight_decay: AdamW's, on all parameters.
        clip_low: lower width of the ratio's clip.
        clip_high: upper width.
        kl_coefficient: weight of k3 against the reference weights, by role.
        importance_weight_max: truncation of trainer against sampler.
        minibatch_episodes: samples of one minibatch; a short last one is spread over the others.
        optimizer: one Adam for both roles, or one each.
        max_grad_norm: each role's gradient is scaled down to this norm.
        skip_grad_norm: beyond this norm a role's gradient is thrown away; None for never.
        temperature: of the sampler, by role.
        micro_tokens: padded tokens of one forward pass; few keep a processor's caches warm, a GPU
            takes more.
        seed: of the order of minibatches.
    """

    learning_rate: Mapping[Role, float] = _by_role(1e-6)
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.1
    clip_low: float = 0.20
    clip_high: float = 0.28
    kl_coefficient: Mapping[Role, float] = _by_role(0.0)
    importance_weight_max: float = 2.0
    minibatch_episodes: int = 192
    optimizer: Literal["shared", "per_role"] = "shared"
    max_grad_norm: float = 1.0
    skip_grad_norm: float | None = None
    temperature: Mapping[Role, float] = _by_role(1.0)
    micro_tokens: int = 4096
    seed: int = 0


_SUMS = ("tokens", "read", "forwards", "loss", "kl", "clipped", "weight", "skipped")


@dataclass(slots=True)
class Tally:
    """Sums over the trained tokens of one role.

    `tokens` counts sampled tokens, `read` whole rows that went forward and backward, and `forwards`
    those that went forward once more (old and reference log-probabilities).
    """

    tokens: int = 0
    read: int = 0
    forwards: int = 0
    loss: float = 0.0
    kl: float = 0.0
    clipped: float = 0.0
    weight: float = 0.0
    norms: list[float] = field(default_factory=list)
    skipped: int = 0

    def add(self, other: Tally) -> None:
        """Take another tally's sums in."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.norms += other.norms


@dataclass(frozen=True, slots=True)
class Share:
    """Rows of one role whose gradient is wanted.

    Attributes:
        rows: of one role.
        scales: per row, one over its sample's sampled tokens times the minibatch's samples.
        old: per row, its log-probabilities at the batch's start; None where the weights are those.
    """

    rows: Sequence[TrainRow]
    scales: Sequence[float]
    old: Sequence[Sequence[float]] | None

    def pick(self, places: Sequence[int]) -> Share:
        """Return some of the rows."""
        return Share(
            [self.rows[place] for place in places],
            [self.scales[place] for place in places],
            None if self.old is None else [self.old[place] for place in places],
        )


class Gradients:
    """Log-probabilities and gradients of rows.

    Args:
        model: the weights that train, in evaluation mode: old and new log-probabilities must agree.
        reference: frozen weights for the KL. None uses the model with its adapters switched off,
            where it has adapters.
    """

    def __init__(self, model: Any, reference: Any = None) -> None:
        self.model = model.eval()
        self.reference = reference
        self.parameters = {n: p for n, p in model.named_parameters() if p.requires_grad}

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        device: torch.device = next(iter(self.parameters.values())).device
        return device

    def gradient(self, share: Share, settings: LearnerSettings) -> tuple[list[torch.Tensor], Tally]:
        """Return the gradient of the rows' part of the loss, and what was seen on the way."""
        tally = Tally()
        for parameter in self.parameters.values():
            parameter.grad = None
        for places in micro_batches(share.rows, settings.micro_tokens):
            with torch.enable_grad():
                loss = self._loss(share.pick(places), settings, tally)
                loss.backward()  # type: ignore[no-untyped-call]
        gradient = [
            torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters.values()
        ]
        return gradient, tally

    @torch.no_grad()
    def logprobs(self, rows: Sequence[TrainRow], settings: LearnerSettings) -> list[list[float]]:
        """Return each row's log-probabilities of its sampled tokens, under the weights of now."""
        found: dict[int, list[float]] = {}
        for places in micro_batches(rows, settings.micro_tokens):
            batch = [rows[place] for place in places]
            for role in ROLES:
                own = [place for place in places if rows[place].role == role]
                if not own:
                    continue
                batch = [rows[place] for place in own]
                counts = [sum(row.loss_mask) for row in batch]
                parts = torch.split(self._logprobs(self.model, batch, settings), counts)
                found.update(zip(own, (part.tolist() for part in parts), strict=True))
        return [found[place] for place in range(len(rows))]

    def _loss(self, share: Share, settings: LearnerSettings, tally: Tally) -> torch.Tensor:
        rows, role, device = share.rows, share.rows[0].role, self.device
        logp = self._logprobs(self.model, rows, settings)
        old = logp.detach() if share.old is None else _flat(share.old, device)
        counts = torch.tensor([sum(row.loss_mask) for row in rows], device=device)
        advantage = torch.tensor([row.advantage for row in rows], device=device)
        advantage = advantage.repeat_interleave(counts)
        scale = torch.tensor(list(share.scales), device=device).repeat_interleave(counts)

        behaviour = _flat([_spoken(row) for row in rows], device)
        given = torch.tensor([row.supervised for row in rows], device=device)
        behaviour = torch.where(given.repeat_interleave(counts), old, behaviour)
        weight = truncated_importance_weight(old, behaviour, high=settings.importance_weight_max)
        ratio = (logp - old).exp()
        bounds = {"eps_low": settings.clip_low, "eps_high": settings.clip_high}
        losses = weight * clipped_surrogate_loss(ratio, advantage, **bounds)
        if (beta := settings.kl_coefficient[role]) > 0:
            divergence = kl_k3(logp, self._reference_logprobs(rows, settings))
            losses = losses + beta * divergence
            tally.forwards += sum(len(row.ids) for row in rows)
            tally.kl += float(divergence.detach().sum())
        loss = (losses * scale).sum()
        tally.tokens += len(logp)
        tally.read += sum(len(row.ids) for row in rows)
        tally.loss += float(loss.detach())
        tally.clipped += float(is_clipped(ratio.detach(), advantage, **bounds).sum())
        tally.weight += float(weight.sum())
        return loss

    def _logprobs(
        self, model: Any, rows: Sequence[TrainRow], settings: LearnerSettings
    ) -> torch.Tensor:
        """Return the log-probabilities of all sampled tokens of the rows, end to end.

        Rows are padded on the right and need no attention mask: no token sees what follows it.
        """
        width = max(len(row.ids) for row in rows)
        ids = torch.tensor(
            [row.ids + [0] * (width - len(row.ids)) for row in rows], device=self.device
        )
        mask = torch.tensor(
            [row.loss_mask + [0] * (width - len(row.ids)) for row in rows], device=self.device
        )
        first = int(mask.argmax(-1).min())
        wanted = mask[:, first:].bool()
        before = torch.arange(first - 1, width - 1, device=self.device)
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=before).logits
        kept: list[tuple[int, ...] | None] | None = None
        if any(row.kept is not None for row in rows):
            kept = [
                row.kept[place] if row.kept is not None else None
                for row in rows
                for place, bit in enumerate(row.loss_mask)
                if bit
            ]
        temperature = settings.temperature[rows[0].role]
        return kept_logprobs(logits[wanted], ids[:, first:][wanted], kept, temperature)

    @torch.no_grad()
    def _reference_logprobs(
        self, rows: Sequence[TrainRow], settings: LearnerSettings
    ) -> torch.Tensor:
        if self.reference is not None:
            return self._logprobs(self.reference, rows, settings)
        if not has_adapters(self.model):
            raise ValueError("a KL needs reference weights; against the weights of now it is 0")
        with self.model.disable_adapter():
            return self._logprobs(self.model, rows, settings)


def micro_batches(rows: Sequence[TrainRow], tokens: int) -> Iterator[list[int]]:
    """Part rows into forward passes of similar length, within a budget of padded tokens."""
    batch: list[int] = []
    for place in sorted(range(len(rows)), key=lambda place: len(rows[place].ids)):
        if batch and (len(batch) + 1) * len(rows[place].ids) > tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def total_norm(gradient: Sequence[torch.Tensor]) -> float:
    """Return the norm of all parts together; not finite where one of them is not."""
    norm = float(torch.nn.utils.get_total_norm(list(gradient)))
    return norm if math.isfinite(norm) else math.nan


def _flat(values: Sequence[Sequence[float]], device: torch.device) -> torch.Tensor:
    return torch.tensor([number for row in values for number in row], device=device)


def _spoken(row: TrainRow) -> list[float]:
    return [
        logprob for logprob, bit in zip(row.behaviour_logprobs, row.loss_mask, strict=True) if bit
    ]
