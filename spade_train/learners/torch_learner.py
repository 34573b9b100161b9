"""`TorchLearner`: the paper's GRPO update in the open (training.md section 3).

Both roles train the same weights: each minibatch gives one gradient a role, clipped and logged by
role. They are summed for one Adam (`shared`, the paper), or each goes to an Adam of its own
(`per_role`).

It stands on torch alone. Accelerate's part on one process would be to place the model (the policy
that shares it has done so), to hold back the exchange of gradients between accumulated passes
(there is nobody to exchange with), and to clip what stands in `.grad`: but here each role's
gradient is clipped and logged by itself before the sum, and comes from helper processes as plain
tensors. Its process-wide state would add what a bit-exact resume must not depend on. Runs on
several devices belong to a learner that is built on it, behind the same protocol.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from spade_train.errors import CheckpointError
from spade_train.learners.adapters import WEIGHTS, describe, has_adapters, saved_name
from spade_train.learners.base import ROLES, Role, TrainBatch, TrainRow
from spade_train.learners.gradients import Gradients, LearnerSettings, Share, Tally, total_norm
from spade_train.seeds import derive

__all__ = ["GradientEngine", "LearnerSettings", "TorchLearner"]


class GradientEngine(Protocol):
    """What computes gradients: this process, or several."""

    def gradient(self, share: Share, settings: LearnerSettings) -> tuple[list[torch.Tensor], Tally]:
        """Return the gradient of the rows' part of the loss, and what was seen on the way."""
        ...

    def logprobs(self, rows: Sequence[TrainRow], settings: LearnerSettings) -> list[list[float]]:
        """Return each row's log-probabilities of its sampled tokens."""
        ...


class TorchLearner:
    """Trains a causal language model in place.

    Args:
        model: the model that the policy generates with.
        settings: the numbers of the update.
        reference: frozen weights for the KL. By default a copy of the model as it is now (of a
            LoRA model: the model with its adapters switched off), made only where it is needed.
        engine: computes gradients on the model's weights; in this process by default.
    """

    def __init__(
        self,
        model: Any,
        settings: LearnerSettings,
        reference: Any = None,
        engine: GradientEngine | None = None,
    ) -> None:
        self.model = model
        self.settings = settings
        self.version = 0
        self.reference = reference or reference_of(model, settings)
        local = Gradients(model, self.reference)
        self.engine: GradientEngine = engine or local
        self.parameters = local.parameters
        self._origin = _fingerprint(model)
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
        if _needs_reference(self.model, settings) and self.reference is None:
            raise ValueError("a KL needs the first weights: give a reference from the start")
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
        later = [row for minibatch in minibatches[1:] for row in self._working(minibatch)]
        values = self.engine.logprobs(later, self.settings) if later else []
        old = {id(row): value for row, value in zip(later, values, strict=True)}
        tallies = {role: Tally() for role in ROLES}
        for row in later:
            tallies[row.role].forwards += len(row.ids)
        for number, minibatch in enumerate(minibatches):
            self._step(minibatch, old if number else None, tallies)
        self.version += 1
        return _metrics(tallies)

    def sync(self) -> None:
        """Nothing to hand over: the policy generates with the same weights."""

    def save(self, folder: Path) -> None:
        """Write weights and optimisers.

        Raises:
            OSError: they can't be written.
        """
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        tensors = {self._stored(n): p.detach().contiguous() for n, p in self.parameters.items()}
        states = {name: optimizer.state_dict() for name, optimizer in self.optimizers.items()}
        state = {"version": self.version, "origin": self._origin, "optimizers": states}
        try:
            save_file(tensors, folder / self._file, metadata={"format": "pt"})
            if has_adapters(self.model):
                describe(self.model, folder)
            torch.save(state, folder / "optimizer.pt")
        except (SafetensorError, RuntimeError) as error:  # how both say that a disk is full
            raise OSError(f"the weights can't be written: {error}") from error

    def load(self, folder: Path) -> None:
        """Take up what `save` wrote.

        Raises:
            CheckpointError: a file is missing or damaged, or the weights are another model's.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            tensors = load_file(folder / self._file)
            state = torch.load(folder / "optimizer.pt", weights_only=True)
        except (OSError, SafetensorError, RuntimeError, EOFError, ValueError) as error:
            raise CheckpointError(f"the checkpoint {folder} can't be read: {error}") from error
        shapes = {self._stored(name): tuple(p.shape) for name, p in self.parameters.items()}
        if {name: tuple(t.shape) for name, t in tensors.items()} != shapes:
            raise CheckpointError(f"the checkpoint {folder} is of another model than this run's")
        if state["origin"] != self._origin:
            raise CheckpointError(
                f"the run of {folder} began from other weights than the model has now, which also "
                f"are its reference; put the old model back, or begin a new run"
            )
        if set(state["optimizers"]) != set(self.optimizers):
            raise CheckpointError(f"the checkpoint {folder} is of another optimizer setting")
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(tensors[self._stored(name)])
        for name, optimizer in self.optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])
        self.version = int(state["version"])

    @property
    def _file(self) -> str:
        return WEIGHTS if has_adapters(self.model) else "weights.safetensors"

    def _stored(self, parameter: str) -> str:
        return saved_name(parameter) if has_adapters(self.model) else parameter

    def _step(
        self,
        rows: Sequence[TrainRow],
        old: Mapping[int, list[float]] | None,
        tallies: Mapping[Role, Tally],
    ) -> None:
        """Take one step on a minibatch: the mean over its samples of their token means."""
        lengths: dict[str, int] = {}
        for row in rows:
            lengths[row.sample_id] = lengths.get(row.sample_id, 0) + sum(row.loss_mask)
        gradients: dict[Role, list[torch.Tensor]] = {}
        for role in ROLES:
            own = [row for row in self._working(rows) if row.role == role]
            if not own:
                continue
            scales = [1.0 / (lengths[row.sample_id] * len(lengths)) for row in own]
            before = None if old is None else [old[id(row)] for row in own]
            gradient, tally = self.engine.gradient(Share(own, scales, before), self.settings)
            if self._clip(gradient, tally):
                gradients[role] = gradient
            tallies[role].add(tally)
        if not gradients:
            return
        if self.settings.optimizer == "shared":
            parts = zip(*gradients.values(), strict=True)
            self._apply("shared", [torch.stack(part).sum(0) for part in parts])
        else:
            for role, gradient in gradients.items():
                self._apply(role, gradient)

    def _working(self, rows: Sequence[TrainRow]) -> list[TrainRow]:
        """Leave out rows without any gradient; they still count in the mean over samples."""
        kl = self.settings.kl_coefficient
        return [row for row in rows if row.advantage != 0 or kl[row.role] > 0]

    def _clip(self, gradient: Sequence[torch.Tensor], tally: Tally) -> bool:
        """Scale a role's gradient down to the limit; False where it must not be applied."""
        norm, limit = total_norm(gradient), self.settings.skip_grad_norm
        if math.isnan(norm) or (limit is not None and norm > limit):
            tally.skipped += 1
            return False
        tally.norms.append(norm)
        if norm > self.settings.max_grad_norm:
            torch._foreach_mul_(list(gradient), self.settings.max_grad_norm / norm)
        return True

    def _apply(self, name: str, gradient: Sequence[torch.Tensor]) -> None:
        for parameter, part in zip(self.parameters.values(), gradient, strict=True):
            parameter.grad = part
        self.optimizers[name].step()
        self.optimizers[name].zero_grad(set_to_none=True)

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


def reference_of(model: Any, *settings: LearnerSettings) -> Any:
    """Return a frozen copy of a model where a KL needs one and adapters don't stand for it.

    Args:
        model: as a run begins with it.
        settings: all that the run goes through.
    """
    if not any(_needs_reference(model, stage) for stage in settings):
        return None
    return copy.deepcopy(model).requires_grad_(False)


def _needs_reference(model: Any, settings: LearnerSettings) -> bool:
    return any(settings.kl_coefficient[role] > 0 for role in ROLES) and not has_adapters(model)


def check_origin(model: Any, folder: Path) -> None:
    """Refuse a checkpoint whose run began from other weights than a model's.

    Args:
        model: as a run begins with it.
        folder: of the checkpoint.

    Raises:
        CheckpointError: the checkpoint can't be read, or is of other weights.
    """
    try:
        state = torch.load(folder / "optimizer.pt", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError) as error:
        raise CheckpointError(f"the checkpoint {folder} can't be read: {error}") from error
    if state["origin"] != _fingerprint(model):
        raise CheckpointError(
            f"the run of {folder} began from other weights than its model has now; put the old "
            f"model back"
        )


def _fingerprint(model: Any) -> str:
    """Return a hash of the first numbers of every parameter."""
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        head = parameter.detach().flatten()[:1024].float().cpu().numpy()
        digest.update(name.encode() + head.tobytes())
    return digest.hexdigest()


def _metrics(tallies: Mapping[Role, Tally]) -> dict[str, float | None]:
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
        metrics[f"trained_tokens/{role}"] = tally.read
        metrics[f"forward_tokens/{role}"] = tally.forwards
    if not metrics:  # every group was equal: counted by the loop, nothing to say here
        return metrics
    total = sum(tally.tokens for tally in tallies.values())
    metrics["kl"] = sum(tally.kl for tally in tallies.values()) / total
    metrics["clip_fraction"] = sum(tally.clipped for tally in tallies.values()) / total
    metrics["importance_weight_mean"] = sum(t.weight for t in tallies.values()) / total
    return metrics
