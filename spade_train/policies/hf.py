"""A causal language model of `transformers`, on the processor or a GPU.

Generation is an own loop over the key-value cache, because a run must know of each token which
others could have been drawn, and must draw the same after a resume.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from spade_train.chat import ChatTemplate
from spade_train.errors import PolicyError
from spade_train.policies.base import Generation, Message, Sampling
from spade_train.policies.cache import GrowingCache
from spade_train.policies.sampling import draw, uniforms


class HFPolicy:
    """A `transformers` causal model as a policy; a learner may train the same model object.

    Args:
        model: the model, in evaluation mode.
        tokenizer: its tokenizer, with a chat template.
        name: for metrics and provenance.
        template_options: variables of the chat template (`enable_thinking`).
        batch_tokens: rows of one batch times their longest length stay below this.
    """

    trainable = True

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str,
        template_options: Mapping[str, Any] | None = None,
        batch_tokens: int = 1 << 18,
    ) -> None:
        self.name = name
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.template = ChatTemplate(tokenizer, template_options)
        self.append_only = self.template.append_only
        self.batch_tokens = batch_tokens
        self.context_tokens: int | None = getattr(model.config, "max_position_embeddings", None)
        self.stop_ids = self._stops()
        # Sliding windows count positions of the cache, holes too: there lengths must not differ.
        self._equal_lengths = not GrowingCache(model.config).plain
        forward = inspect.signature(type(model).forward).parameters
        self._cache_argument = "cache" if "cache" in forward else "past_key_values"

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        device: str | None = None,
        dtype: str = "float32",
        name: str | None = None,
        template_options: Mapping[str, Any] | None = None,
    ) -> HFPolicy:
        """Load a folder in the Hugging Face layout, or a hub model that the user names.

        Raises:
            PolicyError: there is no such model, or it can't be read.
        """
        from transformers import AutoModelForCausalLM, AutoTokenizer

        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            tokenizer = AutoTokenizer.from_pretrained(str(path))
            model = AutoModelForCausalLM.from_pretrained(str(path), dtype=getattr(torch, dtype))
        except (OSError, ValueError, KeyError) as error:
            raise PolicyError(
                f"the model {str(path)!r} can't be loaded: {error}; give a folder that holds "
                f"config.json, the weights and the tokenizer"
            ) from error
        return cls(
            model.to(device),
            tokenizer,
            name=name or Path(path).name,
            template_options=template_options,
        )

    @property
    def parameters(self) -> int:
        """How many parameters the model has, tied ones once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def limit_context(self, tokens: int) -> None:
        """Let no conversation grow beyond so many tokens, nor beyond the model's own limit."""
        self.context_tokens = min(tokens, self.context_tokens or tokens)

    def with_template(self, options: Mapping[str, Any]) -> HFPolicy:
        """Return the same model behind a chat template with other variables."""
        return self._twin(self.model, options)

    def with_model(self, model: Any) -> HFPolicy:
        """Return another model behind the same tokenizer and template."""
        return self._twin(model, self.template.options)

    def _twin(self, model: Any, options: Mapping[str, Any]) -> HFPolicy:
        twin = HFPolicy(
            model,
            self.tokenizer,
            name=self.name,
            template_options=options,
            batch_tokens=self.batch_tokens,
        )
        twin.context_tokens = self.context_tokens
        return twin

    def encode_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
    ) -> list[int]:
        """Encode a conversation through the chat template, contents without special tokens."""
        return self.template.prompt(messages, tools, add_generation_prompt=add_generation_prompt)

    def extend_chat(self, messages: Sequence[Message], last_token: int | None = None) -> list[int]:
        """Encode the template's text between a sampled reply and the next one."""
        return self.template.suffix(messages, last_token)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, special tokens included."""
        text: str = self.tokenizer.decode(
            list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text

    def reply_text(self, generation: Generation) -> str:
        """Return a reply's text without its end-of-turn token."""
        ids = generation.token_ids
        return self.decode(ids[:-1] if ids and ids[-1] in self.stop_ids else ids)

    def generate(
        self, prompts: Sequence[list[int]], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Generation]:
        """Draw one reply a prompt, in batches of similar length.

        Raises:
            PolicyError: a prompt is empty, or leaves no room for a reply in the model's context.
        """
        if len(prompts) != len(seeds):
            raise PolicyError(f"{len(prompts)} prompts came with {len(seeds)} seeds")
        for prompt in prompts:
            if not prompt or (self.context_tokens and len(prompt) >= self.context_tokens):
                raise PolicyError(
                    f"a prompt of {len(prompt)} tokens can't be answered by {self.name!r}, whose "
                    f"context is {self.context_tokens} tokens"
                )
        replies: dict[int, Generation] = {}
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        for rows in self._batches(order, prompts, sampling.max_tokens):
            batch = self._generate([prompts[i] for i in rows], sampling, [seeds[i] for i in rows])
            replies.update(zip(rows, batch, strict=True))
        return [replies[i] for i in range(len(prompts))]

    def _stops(self) -> frozenset[int]:
        config = getattr(self.model, "generation_config", None)
        eos = getattr(config, "eos_token_id", None) or self.tokenizer.eos_token_id
        ids = set(eos) if isinstance(eos, (list, tuple)) else {eos}
        ids.add(self.template.end_of_turn)
        found = frozenset(i for i in ids if i is not None)
        if not found:
            raise PolicyError(f"{self.name!r} has no end-of-turn token, so no reply would end")
        return found

    def _batches(
        self, order: Sequence[int], prompts: Sequence[list[int]], reply: int
    ) -> list[list[int]]:
        batches: list[list[int]] = []
        for index in order:
            # Sorted by length: this prompt is the batch's longest so far.
            length = len(prompts[index])
            full = bool(batches) and (len(batches[-1]) + 1) * (length + reply) > self.batch_tokens
            uneven = (
                self._equal_lengths and bool(batches) and length != len(prompts[batches[-1][0]])
            )
            if not batches or full or uneven:
                batches.append([])
            batches[-1].append(index)
        return batches

    @torch.inference_mode()
    def _generate(
        self, prompts: list[list[int]], sampling: Sampling, seeds: list[int]
    ) -> list[Generation]:
        """Fill the cache with all tokens but each prompt's last, then draw token by token.

        Prompts are padded on the right, where causal attention needs no mask. So the pads lie as
        holes between a short prompt and its reply, and the mask of the drawing steps hides them.
        """
        device = self.model.device
        cache = GrowingCache(self.model.config)
        width = max(map(len, prompts)) - 1
        lengths = torch.tensor([len(p) - 1 for p in prompts], device=device)
        if width:
            heads = [p[:-1] + [0] * (width - len(p) + 1) for p in prompts]
            self._forward(torch.tensor(heads, device=device), None, None, cache)
        mask = torch.arange(width, device=device)[None] < lengths[:, None]
        ids = torch.tensor([p[-1:] for p in prompts], device=device)
        streams = np.array(seeds, dtype=np.uint64)
        stops = torch.tensor(sorted(self.stop_ids), device=device)
        replies = [Generation([], [], "length", [] if sampling.restricts else None) for _ in seeds]
        alive = np.arange(len(prompts))  # the rows that still sit in the batch
        unended = np.ones(len(prompts), dtype=bool)  # of those, the ones without an end
        context = self.context_tokens or 1 << 30
        limits = np.array([min(sampling.max_tokens, context - len(p)) for p in prompts])
        for step in range(int(limits.max())):
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], -1)
            logits = self._forward(ids, mask, lengths[:, None] + step, cache)
            tokens, logprobs, kept = draw(logits, sampling, uniforms(streams[alive], step))
            ended = torch.isin(tokens, stops).cpu().numpy()
            _record(replies, alive, unended, tokens, logprobs, kept, ended)
            unended &= ~ended & (step + 1 < limits[alive])
            if not unended.any():
                break
            ids = tokens[:, None]
            if unended.sum() <= 0.75 * len(unended):
                rows = torch.from_numpy(np.flatnonzero(unended)).to(device)
                ids, lengths, mask = ids[rows], lengths[rows], mask[rows]
                mask = cache.keep_rows(rows, mask)
                alive, unended = alive[unended], unended[unended]
        return replies

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
