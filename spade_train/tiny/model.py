"""The embedded policy's architecture: a small Qwen3 decoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the decoder.

    Attributes:
        layers: decoder layers.
        width: hidden size.
        heads: attention heads, each with keys and values of its own.
        inner: width of the feed-forward part.
        context: positions it is made for.
    """

    layers: int = 3
    width: int = 64
    heads: int = 2
    inner: int = 224
    context: int = 1024


def new_model(vocabulary: int, shape: Shape, seed: int, *, pad: int, end: int) -> Any:
    """Return a freshly initialised `transformers` model, float32, in training mode.

    Args:
        vocabulary: number of tokens.
        shape: its sizes.
        seed: of the initialisation; torch's global generator is left as it was.
        pad: id of the padding token.
        end: id of the token that ends a turn.
    """
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        head_dim=shape.width // shape.heads,
        max_position_embeddings=shape.context,
        tie_word_embeddings=True,
        attention_dropout=0.0,
        pad_token_id=pad,
        bos_token_id=None,
        eos_token_id=end,
        initializer_range=0.8 / shape.width**0.5,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen3ForCausalLM(config)


def parameters(model: Any) -> int:
    """Return the number of distinct parameters, the tied embedding once."""
    return sum(parameter.numel() for parameter in model.parameters())
