"""LoRA (arXiv 2106.09685): small matrices beside frozen weights are all that trains.

The wrapped model is its own reference: switched off, its adapters leave the weights that the run
began from. So a run with a KL needs no second copy of the model.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from spade_runtime.errors import ConfigError

ALL_LINEAR = "all-linear"
"""Every linear layer but the one that gives logits."""
# The names that `peft` reads from a folder; a checkpoint of a LoRA run is such a folder.
WEIGHTS = "adapter_model.safetensors"
_NAME = "default"


def with_lora(model: Any, *, rank: int, alpha: int, targets: Sequence[str], seed: int) -> Any:
    """Return the model with adapters, its own weights frozen.

    Args:
        model: a causal model of `transformers`.
        rank: of the matrices.
        alpha: their product is scaled by alpha / rank.
        targets: names of layers, or `all-linear` alone.
        seed: of the random half of them; the same seed gives the same adapters.

    Raises:
        ConfigError: the model has no such layers.
    """
    from peft import LoraConfig, get_peft_model

    modules = ALL_LINEAR if list(targets) == [ALL_LINEAR] else list(targets)
    config = LoraConfig(
        r=rank, lora_alpha=alpha, target_modules=modules, bias="none", task_type="CAUSAL_LM"
    )
    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            # peft asks transformers by a name that transformers is giving up.
            warnings.simplefilter("ignore", FutureWarning)
            torch.manual_seed(seed)
            return get_peft_model(model, config).eval()
    except ValueError as error:
        linear = {
            name.rpartition(".")[2]
            for name, module in model.named_modules()
            if isinstance(module, torch.nn.Linear)
        }
        raise ConfigError(
            f"lora_targets={list(targets)} fits no layer of the model ({error}); use "
            f"[{ALL_LINEAR}], or of {', '.join(sorted(linear))}"
        ) from error


def has_adapters(model: Any) -> bool:
    """Whether the model trains adapters beside frozen weights."""
    return hasattr(model, "disable_adapter")


def saved_name(parameter: str) -> str:
    """Return the name that `peft` gives an adapter's parameter in a file."""
    return parameter.replace(f".{_NAME}.", ".")


def describe(model: Any, folder: Path) -> None:
    """Write what `peft` must know to load the adapters from the folder."""
    model.peft_config[_NAME].save_pretrained(str(folder))
