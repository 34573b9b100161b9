"""`TorchLearner`: the paper's GRPO update in the open (training.md section 3).

One process, any device. Both roles train the same weights: each minibatch gives one gradient a
role, clipped and logged by role. They are summed for one Adam (`shared`, the paper), or each goes
to an Adam of its own (`per_role`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from spade_train.errors import CheckpointError
from spade_train.learners.base import ROLES, Role, TrainBatch, TrainRow
from spade_train.learners.terms import (
    clipped_surrogate_loss,
    is_clipped,
    kept_logprobs,
    kl_k3,
    truncated_importance_weight,
)
from spade_train.seeds import derive


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
        micro_tokens: padded tokens of one forward pass.
        seed: of the order of minibatches.
    """

    learning_rate: Mapping[Role, float] = field(
        default_factory=lambda: {"agent": 1e-6, "designer": 1e-6}
    )
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.1
    clip_low: float = 0.20
    clip_high: float = 0.28
    kl_coefficient: Mapping[Role, float] = field(
        default_factory=lambda: {"agent": 0.0, "designer": 0.0}
    )
    importance_weight_max: float = 2.0
    minibatch_episodes: int = 192
    optimizer: Literal["shared", "per_role"] = "shared"
    max_grad_norm: float = 1.0
    skip_grad_norm: float | None = None
    temperature: Mapping[Role, float] = field(
        default_factory=lambda: {"agent": 1.0, "designer": 1.0}
    )
    micro_tokens: int = 16384
    seed: int = 0


@dataclass(slots=True)
class _Tally:
    """Sums over the trained tokens of one role."""

    tokens: int = 0
    loss: float = 0.0
    kl: float = 0.0
    clipped: float = 0.0
    weight: float = 0.0
    norms: list[float] = field(default_factory=list)
    skipped: int = 0


class TorchLearner:
    """Trains a causal language model in this process.

    Args:
        model: the model that the policy generates with; trained in place.
        settings: the numbers of the update.
        reference: frozen weights for the KL. By default a copy of the model as it is now (of a
            LoRA model: the model with its adapters switched off), made only where it is needed.
    """

    def __init__(self, model: Any, settings: LearnerSettings, reference: Any = None) -> None:
        self.model = model.eval()  # no dropout: old and new log-probabilities must agree
        self.settings = settings
        self.version = 0
        self.parameters = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self._adapters = hasattr(model, "disable_adapter")
        needs_reference = any(settings.kl_coefficient[role] > 0 for role in ROLES)
        if needs_reference and reference is None and not self._adapters:
            reference = copy.deepcopy(model).requires_grad_(False)
        self.reference = reference
        names: Sequence[str] = ["shared"] if settings.optimizer == "shared" else ROLES
        self.optimizers = {
            name: torch.optim.AdamW(
                self.parameters.values(),
                lr=settings.learning_rate["designer" if name == "designer" else "agent"],
                betas=settings.betas,
                weight_decay=settings.weight_decay,
                fused=True,
            )
            for name in names
        }

    def configure(self, settings: LearnerSettings) -> None:
        """Take other numbers from the next update on; the optimisers keep their moments."""
        if settings.optimizer != self.settings.optimizer:
            raise ValueError("a run can't change its kind of optimizer")
        self.settings = settings
        for name, optimizer in self.optimizers.items():
            for group in optimizer.param_groups:
                role: Role = "designer" if name == "designer" else "agent"
                group["lr"] = settings.learning_rate[role]

    def update(self, batch: TrainBatch) -> dict[str, float | None]:
        """Train on a batch once, minibatch by minibatch; an empty one changes nothing."""
        rows = [row for row in batch.rows if any(row.loss_mask)]
        if not rows:
            return {}
        minibatches = list(self._minibatches(rows, batch.step))
        # Before the first step the weights are the old ones, so that minibatch needs no extra pass.
        old = [None, *(self._old_logprobs(rows) for rows in minibatches[1:])]
        tallies = {role: _Tally() for role in ROLES}
        for minibatch, old_logprobs in zip(minibatches, old, strict=True):
            self._step(minibatch, old_logprobs, tallies)
        self.version += 1
        return _metrics(tallies)

    def sync(self) -> None:
        """Nothing to hand over: the policy generates with the same weights."""

    def save(self, folder: Path) -> None:
        """Write weights and optimisers."""
        from safetensors.torch import save_file

        tensors = {name: p.detach().contiguous() for name, p in self.parameters.items()}
        save_file(tensors, folder / "weights.safetensors")
        states = {name: optimizer.state_dict() for name, optimizer in self.optimizers.items()}
        torch.save({"version": self.version, "optimizers": states}, folder / "optimizer.pt")

    def load(self, folder: Path) -> None:
        """Take up what `save` wrote.

        Raises:
            CheckpointError: a file is missing or damaged, or the weights are another model's.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            tensors = load_file(folder / "weights.safetensors")
            state = torch.load(folder / "optimizer.pt", weights_only=True)
        except (OSError, SafetensorError, RuntimeError, EOFError, ValueError) as error:
            raise CheckpointError(f"the checkpoint {folder} can't be read: {error}") from error
        shapes = {name: tuple(p.shape) for name, p in self.parameters.items()}
        if {name: tuple(t.shape) for name, t in tensors.items()} != shapes:
            raise CheckpointError(f"the checkpoint {folder} is of another model than this run's")
        if set(state["optimizers"]) != set(self.optimizers):
            raise CheckpointError(f"the checkpoint {folder} is of another optimizer setting")
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(tensors[name])
        for name, optimizer in self.optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])
        self.version = int(state["version"])

    # -- one minibatch -------------------------------------------------------------------------

    def _step(
        self,
        rows: Sequence[TrainRow],
        old: dict[int, torch.Tensor] | None,
        tallies: Mapping[Role, _Tally],
    ) -> None:
        lengths: dict[str, int] = {}
        for row in rows:
            lengths[row.sample_id] = lengths.get(row.sample_id, 0) + sum(row.loss_mask)
        gradients: dict[Role, list[torch.Tensor]] = {}
        for role in ROLES:
            # A row without advantage counts in the mean, and without a KL it has no gradient.
            idle = self.settings.kl_coefficient[role] == 0
            own = [r for r in rows if r.role == role and not (idle and r.advantage == 0)]
            if own:
                gradient = self._gradient(own, old, lengths, tallies[role])
                if gradient is not None:
                    gradients[role] = gradient
        if not gradients:
            return
        if self.settings.optimizer == "shared":
            self._apply("shared", [sum(parts) for parts in zip(*gradients.values(), strict=True)])
        else:
            for role, gradient in gradients.items():
                self._apply(role, gradient)

    def _gradient(
        self,
        rows: Sequence[TrainRow],
        old: dict[int, torch.Tensor] | None,
        lengths: Mapping[str, int],
        tally: _Tally,
    ) -> list[torch.Tensor] | None:
        """Return one role's clipped gradient, or None where it must not be applied."""
        for parameter in self.parameters.values():
            parameter.grad = None
        for micro in self._micro(rows):
            with torch.enable_grad():
                loss = self._loss(micro, old, lengths, tally)
                loss.backward()  # type: ignore[no-untyped-call]
        gradient = [
            torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters.values()
        ]
        norm = float(torch.nn.utils.get_total_norm(gradient))
        limit = self.settings.skip_grad_norm
        if not math.isfinite(norm) or (limit is not None and norm > limit):
            tally.skipped += 1
            return None
        tally.norms.append(norm)
        if norm > self.settings.max_grad_norm:
            torch._foreach_mul_(gradient, self.settings.max_grad_norm / norm)
        return gradient

    def _loss(
        self,
        rows: Sequence[TrainRow],
        old: dict[int, torch.Tensor] | None,
        lengths: Mapping[str, int],
        tally: _Tally,
    ) -> torch.Tensor:
        """Return these rows' part of the minibatch's loss."""
        settings, role = self.settings, rows[0].role
        logp = self._logprobs(self.model, rows)
        logp_old = logp.detach() if old is None else torch.cat([old[id(row)] for row in rows])
        behaviour = torch.tensor(_spoken(rows), device=logp.device)
        counts = torch.tensor([sum(row.loss_mask) for row in rows], device=logp.device)
        advantage = torch.tensor([row.advantage for row in rows], device=logp.device)
        advantage = advantage.repeat_interleave(counts)
        shares = [1.0 / (lengths[row.sample_id] * len(lengths)) for row in rows]
        share = torch.tensor(shares, device=logp.device).repeat_interleave(counts)

        weight = truncated_importance_weight(
            logp_old, behaviour, high=settings.importance_weight_max
        )
        ratio = (logp - logp_old).exp()
        bounds = {"eps_low": settings.clip_low, "eps_high": settings.clip_high}
        losses = weight * clipped_surrogate_loss(ratio, advantage, **bounds)
        if (beta := settings.kl_coefficient[role]) > 0:
            divergence = kl_k3(logp, self._reference_logprobs(rows))
            losses = losses + beta * divergence
            tally.kl += float(divergence.detach().sum())
        loss = (losses * share).sum()
        tally.tokens += len(logp)
        tally.loss += float(loss.detach())
        tally.clipped += float(is_clipped(ratio.detach(), advantage, **bounds).sum())
        tally.weight += float(weight.sum())
        return loss

    def _apply(self, name: str, gradient: Sequence[torch.Tensor]) -> None:
        for parameter, part in zip(self.parameters.values(), gradient, strict=True):
            parameter.grad = part
        self.optimizers[name].step()
        self.optimizers[name].zero_grad(set_to_none=True)

    # -- log-probabilities ---------------------------------------------------------------------

    def _logprobs(self, model: Any, rows: Sequence[TrainRow]) -> torch.Tensor:
        """Return the log-probabilities of all sampled tokens of the rows, end to end.

        Rows are padded on the right and need no attention mask: no token sees what follows it.
        """
        device = next(iter(self.parameters.values())).device
        width = max(len(row.ids) for row in rows)
        ids = torch.tensor([row.ids + [0] * (width - len(row.ids)) for row in rows], device=device)
        mask = torch.tensor(
            [row.loss_mask + [0] * (width - len(row.ids)) for row in rows], device=device
        )
        first = int(mask.argmax(-1).min())
        wanted = mask[:, first:].bool()
        before = torch.arange(first - 1, width - 1, device=device)
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=before).logits
        kept: list[tuple[int, ...] | None] | None = None
        if any(row.kept is not None for row in rows):
            kept = [
                row.kept[place] if row.kept is not None else None
                for row in rows
                for place, bit in enumerate(row.loss_mask)
                if bit
            ]
        temperature = self.settings.temperature[rows[0].role]
        return kept_logprobs(logits[wanted], ids[:, first:][wanted], kept, temperature)

    @torch.no_grad()
    def _old_logprobs(self, rows: Sequence[TrainRow]) -> dict[int, torch.Tensor]:
        found: dict[int, torch.Tensor] = {}
        for role in ROLES:
            for micro in self._micro([row for row in rows if row.role == role]):
                counts = [sum(row.loss_mask) for row in micro]
                parts = torch.split(self._logprobs(self.model, micro), counts)
                found.update({id(row): part for row, part in zip(micro, parts, strict=True)})
        return found

    @torch.no_grad()
    def _reference_logprobs(self, rows: Sequence[TrainRow]) -> torch.Tensor:
        if self.reference is not None:
            return self._logprobs(self.reference, rows)
        off: AbstractContextManager[Any] = (
            self.model.disable_adapter() if self._adapters else nullcontext()
        )
        with off:
            return self._logprobs(self.model, rows)

    # -- order -----------------------------------------------------------------------------------

    def _minibatches(self, rows: Sequence[TrainRow], step: int) -> Iterator[list[TrainRow]]:
        """Part the samples at random; a short last minibatch is spread over the others."""
        samples: dict[str, list[TrainRow]] = {}
        for row in rows:
            samples.setdefault(row.sample_id, []).append(row)
        names = sorted(samples)
        order = np.random.default_rng(derive("minibatches", self.settings.seed, step))
        count = max(1, len(names) // self.settings.minibatch_episodes)
        for part in np.array_split(order.permutation(len(names)), count):
            yield [row for index in part for row in samples[names[index]]]

    def _micro(self, rows: Sequence[TrainRow]) -> Iterator[list[TrainRow]]:
        """Part rows into forward passes of similar length, within the budget of padded tokens."""
        batch: list[TrainRow] = []
        for row in sorted(rows, key=lambda row: len(row.ids)):
            if batch and (len(batch) + 1) * len(row.ids) > self.settings.micro_tokens:
                yield batch
                batch = []
            batch.append(row)
        if batch:
            yield batch


def _spoken(rows: Sequence[TrainRow]) -> list[float]:
    return [
        logprob
        for row in rows
        for logprob, bit in zip(row.behaviour_logprobs, row.loss_mask, strict=True)
        if bit
    ]


def _metrics(tallies: Mapping[Role, _Tally]) -> dict[str, float | None]:
    metrics: dict[str, float | None] = {}
    for role, tally in tallies.items():
        if not tally.tokens:
            continue
        metrics[f"loss/{role}"] = tally.loss
        metrics[f"kl/{role}"] = tally.kl / tally.tokens
        metrics[f"clip_fraction/{role}"] = tally.clipped / tally.tokens
        metrics[f"importance_weight_mean/{role}"] = tally.weight / tally.tokens
        metrics[f"grad_norm/{role}"] = float(np.mean(tally.norms)) if tally.norms else None
        metrics[f"guards/skipped_updates_{role}"] = tally.skipped
        metrics[f"trained_tokens/{role}"] = tally.tokens
    if not metrics:  # every group was equal: counted by the loop, nothing to say here
        return metrics
    total = sum(tally.tokens for tally in tallies.values())
    metrics["kl"] = sum(tally.kl for tally in tallies.values()) / total
    metrics["clip_fraction"] = sum(tally.clipped for tally in tallies.values()) / total
    metrics["importance_weight_mean"] = sum(t.weight for t in tallies.values()) / total
    return metrics
