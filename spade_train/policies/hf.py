"""A causal language model of `transformers`, on the processor or a GPU."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from spade_envs.bars import without_bars
from spade_train.chat import ChatTemplate
from spade_train.errors import PolicyError
from spade_train.policies.base import Generation, Message, Sampling
from spade_train.policies.generate import Engine, Request, Sampler


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
        self._backend = getattr(tokenizer, "backend_tokenizer", None)
        self.template = ChatTemplate(tokenizer, template_options)
        self.append_only = self.template.append_only
        self.batch_tokens = batch_tokens
        self.context_tokens: int | None = getattr(model.config, "max_position_embeddings", None)
        self.stop_ids = self._stops()
        self.engine: Engine = Sampler(self.model)

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
        """Load a folder in the Hugging Face layout, a run's, or a hub model that the user names.

        Args:
            path: a model's folder; a run's or one of its checkpoints; or a hub's OWNER/NAME.
            device: such as `cuda`; a GPU where there is one by default.
            dtype: of the weights.
            name: of the policy; the folder's by default.
            template_options: variables of the chat template; of a run, its agent's by default.

        Raises:
            CheckpointError: a run's checkpoint is missing, damaged, or of another model.
            PolicyError: there is no such model, or it can't be read.
        """
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from spade_train.hub import cache_alone, unreachable
        from spade_train.trained import find, load_trained

        if (trained := find(path)) is not None:
            return load_trained(
                trained, device=device, dtype=dtype, name=name, template_options=template_options
            )
        local = Path(path).is_dir() or str(path).startswith(("/", ".", "~"))
        away = "" if local else unreachable()
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            with cache_alone(when=bool(away)), without_bars():
                tokenizer = AutoTokenizer.from_pretrained(str(path))
                model = AutoModelForCausalLM.from_pretrained(str(path), dtype=getattr(torch, dtype))
        except (OSError, ValueError, KeyError) as error:
            if away:
                raise PolicyError(
                    f"the model {str(path)!r} is not in the cache, and the hub can't be reached "
                    f"({away}); give a folder that holds config.json, the weights and the tokenizer"
                ) from error
            raise PolicyError(
                f"the model {str(path)!r} can't be loaded: {' '.join(str(error).split())}; give a "
                f"folder that holds "
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
        twin = type(self)(
            model,
            self.tokenizer,
            name=self.name,
            template_options=options,
            batch_tokens=self.batch_tokens,
        )
        twin.context_tokens = self.context_tokens
        if model is self.model:
            twin.engine = self.engine
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
        # What stands behind a fast tokenizer does the same in half the time.
        text: str = (
            self.tokenizer.decode(
                list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
            if self._backend is None
            else self._backend.decode(list(ids), skip_special_tokens=False)
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
        return self.engine.generate(self._request(prompts, sampling, seeds))

    def converse(
        self,
        prompts: Sequence[list[int]],
        sampling: Sampling,
        seeds: Sequence[int],
        names: Sequence[Hashable],
    ) -> list[Generation]:
        """As `generate`, and keep the keys and values of what was read until `forget`.

        Where the template rewrites earlier turns, little goes on from where it was.
        """
        request = self._request(prompts, sampling, seeds)
        return self.engine.generate(replace(request, names=list(names)))

    def forget(self) -> None:
        """Let go of what was kept of conversations."""
        self.engine.forget()

    def _request(
        self, prompts: Sequence[list[int]], sampling: Sampling, seeds: Sequence[int]
    ) -> Request:
        if len(prompts) != len(seeds):
            raise PolicyError(f"{len(prompts)} prompts came with {len(seeds)} seeds")
        for prompt in prompts:
            if not prompt or (self.context_tokens and len(prompt) >= self.context_tokens):
                raise PolicyError(
                    f"a prompt of {len(prompt)} tokens can't be answered by {self.name!r}, whose "
                    f"context is {self.context_tokens} tokens"
                )
        return Request(
            list(prompts),
            sampling,
            list(seeds),
            stop_ids=self.stop_ids,
            context_tokens=self.context_tokens,
            batch_tokens=self.batch_tokens,
        )

    def _stops(self) -> frozenset[int]:
        config = getattr(self.model, "generation_config", None)
        eos = getattr(config, "eos_token_id", None) or self.tokenizer.eos_token_id
        ids = set(eos) if isinstance(eos, (list, tuple)) else {eos}
        ids.add(self.template.end_of_turn)
        found = frozenset(i for i in ids if i is not None)
        if not found:
            raise PolicyError(f"{self.name!r} has no end-of-turn token, so no reply would end")
        return found
