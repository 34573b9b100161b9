"""Supervised warm start: tokens of the assistant's messages are learned, all else is context."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from spade_train.chat import ChatTemplate
from spade_train.tiny.data import Chat

# A play's few answer tokens carry all that is hard to learn, a design's many are mostly easy.
PURPOSE_WEIGHT = {"design": 1.0, "hint": 1.0, "play": 4.0}


@dataclass(frozen=True, slots=True)
class Row:
    """One encoded sample.

    Attributes:
        ids: its tokens.
        mask: per token, 1 where it is learned.
        purpose: of the sample it came from.
    """

    ids: list[int]
    mask: list[int]
    purpose: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the warm start trains.

    Attributes:
        steps: optimiser steps. Many small ones: the use of hints breaks through after some
            hundred, at any batch size.
        easy_steps: of these, the first ones, which see hinted play of few rounds with the two
            nearest rules. With all rules from the start nothing is learned for long.
        drill_steps: up to this one, the same with all rules, and some of all else.
        learning_rate: its peak; a rise in each stage, over it half a cosine down to a twentieth.
        drills: drills of an easy step; three quarters of them later, beside a third of the rest.
        designs: design samples of a step.
        hints: hint samples.
        plays: play samples.
        micro_tokens: padded tokens of one forward pass.
        seed: of data, initialisation and order.
    """

    steps: int = 4000
    easy_steps: int = 550
    drill_steps: int = 1150
    learning_rate: float = 3e-3
    drills: int = 40
    designs: int = 12
    hints: int = 8
    plays: int = 26
    micro_tokens: int = 4000
    seed: int = 0


def encode(template: ChatTemplate, chat: Chat) -> Row:
    """Encode a sample exactly as a rollout would: whole prompt, then replies and suffixes."""
    ids: list[int] = []
    mask: list[int] = []
    heard: list[dict[str, str]] = []
    end = template.end_of_turn
    assert end is not None, "the tiny tokenizer's template closes every turn"
    for message in chat.messages:
        if message["role"] != "assistant":
            heard.append(message)
            continue
        said = template.suffix(heard, end) if ids else template.prompt(heard, chat.tools)
        reply = [*template.plain(message["content"]), end]
        ids += [*said, *reply]
        mask += [0] * len(said) + [1] * len(reply)
        heard = []
    return Row(ids, mask, chat.purpose)


def train(
    model: Any,
    rows: Callable[[int], Sequence[Row]],
    recipe: Recipe,
    report: Callable[[int, dict[str, float]], None],
) -> None:
    """Train a model in place.

    Args:
        model: a causal language model of `transformers`.
        rows: gives the samples of a step.
        recipe: numbers of the training.
        report: is told each step's mean loss per token by purpose, in nats.
    """
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    model.train()
    for step in range(recipe.steps):
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate * _schedule(step, recipe)
        batch = list(rows(step))
        total = sum(PURPOSE_WEIGHT[row.purpose] * sum(row.mask) for row in batch)
        losses: dict[str, list[float]] = {}
        optimizer.zero_grad()
        for part in micro_batches(batch, recipe.micro_tokens):
            loss = _loss(model, part, losses)
            (loss / total).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        report(step, {purpose: sum(some) / len(some) for purpose, some in losses.items()})
    model.eval()


def micro_batches(rows: Sequence[Row], limit: int) -> Iterator[list[Row]]:
    """Yield rows of like length whose padded size stays within a number of tokens."""
    part: list[Row] = []
    for row in sorted(rows, key=lambda row: len(row.ids)):
        if part and (len(part) + 1) * len(row.ids) > limit:
            yield part
            part = []
        part.append(row)
    if part:
        yield part


def shuffled(items: Sequence[Any], rng: random.Random) -> Iterator[Any]:
    """Yield items for ever, each once a round, in a new order every round."""
    while True:
        order = list(range(len(items)))
        rng.shuffle(order)
        for index in order:
            yield items[index]


def _schedule(step: int, recipe: Recipe) -> float:
    """Return the share of the peak rate: each stage rises first, since what is new shakes all."""
    began = max(start for start in (0, recipe.easy_steps, recipe.drill_steps) if start <= step)
    rise = min(1.0, (step - began + 5) / 55)
    return rise * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / recipe.steps)))


def _loss(model: Any, rows: Sequence[Row], losses: dict[str, list[float]]) -> torch.Tensor:
    """Return the weighted sum of token losses of one padded batch."""
    width = max(len(row.ids) for row in rows)
    ids = torch.tensor([row.ids + [0] * (width - len(row.ids)) for row in rows])
    mask = torch.tensor([row.mask + [0] * (width - len(row.mask)) for row in rows]).bool()
    # Padding on the right under causal attention changes no token that is learned.
    hidden = model.model(input_ids=ids).last_hidden_state[:, :-1]
    learned = mask[:, 1:]
    logits = model.lm_head(hidden[learned])
    token_loss = torch.nn.functional.cross_entropy(logits, ids[:, 1:][learned], reduction="none")
    place = learned.nonzero()[:, 0]
    for index, row in enumerate(rows):
        losses.setdefault(row.purpose, []).append(token_loss[place == index].mean().item())
    weight = torch.tensor([PURPOSE_WEIGHT[row.purpose] for row in rows])
    return (token_loss * weight[place]).sum()
