"""Generation as an own loop over the key-value cache.

A run must know of each token which others could have been drawn, and must draw the same after a
resume; so each row draws from a stream of its own, whatever shares its batch.
"""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch

from spade_train.errors import Diverged
from spade_train.policies.base import Generation, Sampling
from spade_train.policies.cache import GrowingCache
from spade_train.policies.prefixes import Held, Prefixes
from spade_train.policies.sampling import draw, uniforms

# Padded tokens that one pass fills the cache with: more would only fall out of the processor's
# caches again. A GPU takes a whole batch at once.
PREFILL_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class Request:
    """Prompts to answer.

    Attributes:
        prompts: token ids.
        sampling: how tokens are drawn.
        seeds: one a prompt.
        stop_ids: tokens that end a reply.
        context_tokens: prompt and reply stay within it; None for no limit.
        batch_tokens: rows of one batch times their longest length stay below this.
        names: of the conversations that go on with these prompts; None for prompts that stand
            alone.
    """

    prompts: list[list[int]]
    sampling: Sampling
    seeds: list[int]
    stop_ids: frozenset[int]
    context_tokens: int | None
    batch_tokens: int
    names: list[Hashable] | None = None

    def part(self, rows: Sequence[int]) -> Request:
        """Return the request of some of the prompts."""
        return replace(
            self,
            prompts=[self.prompts[row] for row in rows],
            seeds=[self.seeds[row] for row in rows],
            names=None if self.names is None else [self.names[row] for row in rows],
        )

    def reply_limit(self, prompt: Sequence[int]) -> int:
        """Return how many tokens a reply to a prompt may have."""
        if self.context_tokens is None:
            return self.sampling.max_tokens
        return min(self.sampling.max_tokens, self.context_tokens - len(prompt))


class Engine(Protocol):
    """What answers requests: this process, or several."""

    def generate(self, request: Request) -> list[Generation]:
        """Return one reply a prompt, in order."""
        ...

    def forget(self) -> None:
        """Let go of what was kept of named conversations."""
        ...


class Sampler:
    """Answers requests with a `transformers` model in this process."""

    def __init__(self, model: Any) -> None:
        self.model = model
        # Sliding windows count positions of the cache, holes too: there lengths must not differ.
        self._equal_lengths = not GrowingCache(model.config).plain
        # Adapters wrap the model whose signature counts.
        inner = model.get_base_model() if hasattr(model, "get_base_model") else model
        forward = inspect.signature(type(inner).forward).parameters
        self._cache_argument = "cache" if "cache" in forward else "past_key_values"
        self.prefixes = Prefixes()

    def generate(self, request: Request) -> list[Generation]:
        """Return one reply a prompt, in batches of similar length."""
        held = [self._held(request, row) for row in range(len(request.prompts))]
        replies: dict[int, Generation] = {}
        # Conversations that go on have little left to read: apart from those that begin.
        for going_on in (False, True):
            own = [row for row, known in enumerate(held) if (known is not None) == going_on]
            for rows in self._batches(request, own):
                known = [h for h in (held[row] for row in rows) if h is not None]
                made = self._generate(request.part(rows), known)
                replies.update(zip(rows, made, strict=True))
        return [replies[row] for row in range(len(request.prompts))]

    def forget(self) -> None:
        """Let go of what was kept of named conversations."""
        self.prefixes.forget()

    def _held(self, request: Request, row: int) -> Held | None:
        if request.names is None or self._equal_lengths:
            return None
        return self.prefixes.find(request.names[row], request.prompts[row])

    def _batches(self, request: Request, rows: Sequence[int]) -> Iterator[list[int]]:
        batch: list[int] = []
        for row in sorted(rows, key=lambda r: len(request.prompts[r])):
            prompt = request.prompts[row]  # the longest of its batch so far
            size = (len(batch) + 1) * (len(prompt) + request.reply_limit(prompt))
            uneven = self._equal_lengths and batch and len(prompt) != len(request.prompts[batch[0]])
            if batch and (size > request.batch_tokens or uneven):
                yield batch
                batch = []
            batch.append(row)
        if batch:
            yield batch

    @torch.inference_mode()
    def _generate(self, request: Request, held: Sequence[Held]) -> list[Generation]:
        """Fill the cache with all tokens but each prompt's last, then draw token by token.

        Args:
            request: one batch.
            held: what each prompt goes on from; empty where all are read from their start.
        """
        prompts, sampling, device = request.prompts, request.sampling, self.model.device
        cache, mask = self._go_on(prompts, held) if held else self._fill(prompts)
        lengths = torch.tensor([len(p) - 1 for p in prompts], device=device)
        ids = torch.tensor([p[-1:] for p in prompts], device=device)
        streams = np.array(request.seeds, dtype=np.uint64)
        stops = torch.tensor(sorted(request.stop_ids), device=device)
        limits = np.array([request.reply_limit(p) for p in prompts])
        kept_sets = sampling.restricts
        replies = [Generation([], [], "length", [] if kept_sets else None) for _ in prompts]
        for reply, known in zip(replies, held, strict=False):
            reply.known = len(known.ids)
        alive = np.arange(len(prompts))  # the rows that still sit in the batch
        unended = np.ones(len(prompts), dtype=bool)  # of those, the ones without an end
        for step in range(int(limits.max())):
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], -1)
            logits = self._forward(ids, mask, lengths[:, None] + step, cache)
            tokens, logprobs, kept = draw(logits, sampling, uniforms(streams[alive], step))
            if not bool(torch.isfinite(logprobs).all()):
                raise Diverged(
                    "the model's output is not finite, so its weights have diverged; resume from "
                    "an earlier checkpoint with a lower learning_rate"
                )
            ended = torch.isin(tokens, stops).cpu().numpy()
            _record(replies, alive, unended, tokens, logprobs, kept, ended)
            unended &= ~ended & (step + 1 < limits[alive])
            if not unended.any():
                break
            ids = tokens[:, None]
            if unended.sum() <= 0.75 * len(unended):
                self._keep(request, replies, cache, mask, alive, ~unended)
                rows = torch.from_numpy(np.flatnonzero(unended)).to(device)
                ids, lengths, mask = ids[rows], lengths[rows], mask[rows]
                mask = cache.keep_rows(rows, mask)
                alive, unended = alive[unended], unended[unended]
        self._keep(request, replies, cache, mask, alive, np.ones(len(alive), dtype=bool))
        return replies

    def _keep(
        self,
        request: Request,
        replies: Sequence[Generation],
        cache: GrowingCache,
        mask: torch.Tensor,
        alive: np.ndarray[Any, Any],
        leaving: np.ndarray[Any, Any],
    ) -> None:
        """Keep what rows that leave the batch have read, where their conversation may go on."""
        if request.names is None or not cache.plain:
            return
        # A reply that was cut ends its conversation. The last token of one that was not is drawn,
        # but not read.
        rows = [r for r in np.flatnonzero(leaving) if replies[alive[r]].finish == "stop"]
        places = [int(alive[row]) for row in rows]
        read = [request.prompts[p] + replies[p].token_ids[:-1] for p in places]
        names = [request.names[place] for place in places]
        self.prefixes.keep(cache, mask, [int(row) for row in rows], names, read)

    def _go_on(
        self, prompts: Sequence[list[int]], held: Sequence[Held]
    ) -> tuple[GrowingCache, torch.Tensor]:
        """As `_fill`, from what was read at earlier turns."""
        device = self.model.device
        tails = [p[len(h.ids) : -1] for p, h in zip(prompts, held, strict=True)]
        width = max(map(len, tails))
        cache = self.prefixes.cache_of(self.model.config, held, spare=width + 32)
        before = torch.tensor([len(one.ids) for one in held], device=device)
        known = torch.arange(cache.get_seq_length(), device=device)[None] < before[:, None]
        if not width:
            return cache, known
        count = torch.tensor([len(tail) for tail in tails], device=device)
        places = torch.arange(width, device=device)[None]
        mask = torch.cat([known, places < count[:, None]], -1)
        ids = torch.tensor([tail + [0] * (width - len(tail)) for tail in tails], device=device)
        self._forward(ids, mask, before[:, None] + places, cache)
        return cache, mask

    def _fill(self, prompts: Sequence[list[int]]) -> tuple[GrowingCache, torch.Tensor]:
        """Return a cache that holds all tokens but each prompt's last, and which are real.

        Prompts are padded on the right, where causal attention needs no mask. So the pads lie as
        holes between a short prompt and its reply, and the mask of the drawing steps hides them.
        """
        device = self.model.device
        width = max(map(len, prompts)) - 1
        heads = torch.tensor(
            [p[:-1] + [0] * (width - len(p) + 1) for p in prompts], device=device
        ).reshape(len(prompts), width)
        caches = []
        at_once = device.type != "cpu" or self._equal_lengths
        rows = len(prompts) if at_once else max(1, PREFILL_TOKENS // max(1, width))
        for part in torch.split(heads, rows):
            cache = GrowingCache(self.model.config)
            if width:
                self._forward(part, None, None, cache)
            caches.append(cache)
        lengths = torch.tensor([len(p) - 1 for p in prompts], device=device)
        mask = torch.arange(width, device=device)[None] < lengths[:, None]
        return GrowingCache.joined(caches), mask

    def _forward(
        self,
        ids: torch.Tensor,
        mask: torch.Tensor | None,
        positions: torch.Tensor | None,
        cache: GrowingCache,
    ) -> torch.Tensor:
        """Return the next token's logits, (rows, vocabulary)."""
        logits: torch.Tensor = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            use_cache=True,
            logits_to_keep=1,
            **{self._cache_argument: cache},
        ).logits
        return logits[:, -1]


def _record(
    replies: list[Generation],
    alive: np.ndarray[Any, Any],
    unended: np.ndarray[Any, Any],
    tokens: torch.Tensor,
    logprobs: torch.Tensor,
    kept: list[tuple[int, ...]] | None,
    ended: np.ndarray[Any, Any],
) -> None:
    """Append one drawn token to each reply that has not ended yet."""
    drawn, scores = tokens.tolist(), logprobs.tolist()
    for place in np.flatnonzero(unended).tolist():
        reply = replies[alive[place]]
        reply.token_ids.append(drawn[place])
        reply.logprobs.append(scores[place])
        if kept is not None and reply.kept is not None:
            reply.kept.append(kept[place])
        if ended[place]:
            reply.finish = "stop"
