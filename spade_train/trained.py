"""A run's model after training: what the run began from, with the weights of a checkpoint.

A checkpoint holds weights alone. Architecture and tokenizer are those of the model that the run's
`config.yaml` names, which may be another run's in its turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spade_runtime.errors import ConfigError
from spade_train.config import RunConfig, load
from spade_train.errors import CheckpointError
from spade_train.state import CHECKSUMS, Checkpoints

if TYPE_CHECKING:
    from spade_train.policies.hf import HFPolicy

TINY = "tiny"


@dataclass(frozen=True, slots=True)
class Trained:
    """Where a trained model lies.

    Attributes:
        run: the run's folder.
        checkpoint: one of its checkpoints.
        config: of the run.
    """

    run: Path
    checkpoint: Path
    config: RunConfig

    @property
    def name(self) -> str:
        """Of the model, for tables and provenance."""
        return f"{self.run.name}-{self.checkpoint.name}"


def find(path: str | Path) -> Trained | None:
    """Return what a folder holds of a run, None where it is neither a run nor a checkpoint.

    Args:
        path: a checkpoint's folder, or a run's, which stands for its newest checkpoint.

    Raises:
        CheckpointError: the checkpoint is damaged or apart from its run, or the run has none.
    """
    folder = Path(path).expanduser()
    # A folder in the Hugging Face layout is what it says it is, wherever it lies.
    if not folder.is_dir() or (folder / "config.json").is_file():
        return None
    folder = folder.resolve()
    if (folder / "config.yaml").is_file() and (folder / "checkpoints").is_dir():
        checkpoint, _ = Checkpoints(folder / "checkpoints").newest()
        return Trained(folder, checkpoint, _config(folder))
    if folder.name.startswith("step-") or (folder / CHECKSUMS).is_file():
        run = folder.parent.parent
        if folder.parent.name != "checkpoints" or not (run / "config.yaml").is_file():
            raise CheckpointError(
                f"{folder} is a checkpoint without its run: which model it belongs to stands in "
                f"the run's config.yaml; leave it at RUN/checkpoints/{folder.name}"
            )
        Checkpoints(folder.parent).read(folder)
        return Trained(run, folder, _config(run))
    return None


def origin(model: str) -> str:
    """Return the model that a model was first trained from, by way of whatever runs.

    >>> origin("tiny")
    'tiny'
    """
    while model != TINY and (trained := find(model)) is not None:
        model = trained.config.model
    return model


def is_embedded(model: str) -> bool:
    """Say whether a model began as the embedded policy: as shipped, or built anew."""
    base = origin(model)
    return base == TINY or Path(base, "recipe.json").is_file()


def load_trained(
    trained: Trained,
    *,
    device: str | None = None,
    dtype: str = "float32",
    name: str | None = None,
    template_options: Mapping[str, Any] | None = None,
) -> HFPolicy:
    """Load a run's model with a checkpoint's weights; LoRA weights come as adapters.

    Args:
        trained: where it lies.
        device: as `HFPolicy.load` takes it.
        dtype: as `HFPolicy.load` takes it.
        name: of the policy; made from run and step by default.
        template_options: variables of the chat template; those of the run's agent by default.

    Raises:
        CheckpointError: the weights are another model's than the run began from.
        PolicyError: the model that the run began from can't be loaded.
    """
    from spade_train.assemble import with_adapters
    from spade_train.policies.hf import HFPolicy

    config = trained.config
    if template_options is None and config.thinking != "none":
        template_options = {"enable_thinking": config.thinking in ("agent", "both")}
    policy = with_adapters(load_base(config.model, device=device, dtype=dtype), config)
    _take_weights(policy.model, trained)
    return HFPolicy(
        policy.model,
        policy.tokenizer,
        name=name or trained.name,
        template_options=template_options,
    )


def load_base(model: str, *, device: str | None = None, dtype: str = "float32") -> HFPolicy:
    """Load the model that training begins from; adapters of an earlier run become part of it.

    Args:
        model: as the configuration key takes it.
        device: as `HFPolicy.load` takes it; the embedded policy stays on the processor.
        dtype: as `HFPolicy.load` takes it.

    Raises:
        PolicyError: it can't be loaded.
    """
    from spade_train.learners.adapters import has_adapters
    from spade_train.policies.hf import HFPolicy

    if model == TINY:
        from spade_train import tiny

        return tiny.load()
    policy = HFPolicy.load(model, device=device, dtype=dtype, template_options={})
    if not has_adapters(policy.model):
        return policy
    merged = policy.model.merge_and_unload().requires_grad_(True)
    return policy.with_model(merged)


def _config(run: Path) -> RunConfig:
    try:
        return load(run / "config.yaml")
    except ConfigError as error:
        raise CheckpointError(
            f"{run / 'config.yaml'} is no run's configuration of this version: {error}"
        ) from error


def _take_weights(model: Any, trained: Trained) -> None:
    """Copy a checkpoint's weights into the model that its run began from."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from spade_train.learners.adapters import WEIGHTS, has_adapters, saved_name
    from spade_train.learners.torch_learner import check_origin

    adapted = has_adapters(model)
    place = trained.checkpoint / (WEIGHTS if adapted else "weights.safetensors")
    if adapted:
        # Adapters mean nothing beside other weights than those that they were trained with.
        check_origin(model, trained.checkpoint)
    try:
        tensors = load_file(place)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"the weights {place} can't be read: {error}") from error
    own = {
        saved_name(name) if adapted else name: parameter
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }
    if {n: t.shape for n, t in tensors.items()} != {n: p.shape for n, p in own.items()}:
        raise CheckpointError(
            f"the weights {place} are of another model than {trained.config.model!r}, which the "
            f"run's config.yaml names; put the model back that the run began from"
        )
    with torch.no_grad():
        for key, parameter in own.items():
            parameter.copy_(tensors[key])
