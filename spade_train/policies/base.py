"""The one protocol that every policy speaks: token ids in, token ids out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

Message = Mapping[str, Any]
"""A chat message: `role` and `content`; an assistant's may carry `tool_calls`."""

Finish = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn.

    Attributes:
        temperature: logits are divided by it; 0 takes the likeliest token.
        top_p: keep the smallest set of likeliest tokens whose mass reaches it; 1 keeps all.
        top_k: keep this many likeliest tokens; 0 keeps all.
        max_tokens: length of one reply in tokens.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_tokens: int = 512

    def __post_init__(self) -> None:
        if self.temperature < 0 or not 0 < self.top_p <= 1 or self.top_k < 0:
            raise ValueError(f"no such sampling: {self}")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}")

    @property
    def restricts(self) -> bool:
        """Whether some tokens can't be drawn, so that kept sets must be recorded."""
        return self.top_p < 1 or self.top_k > 0 or self.temperature == 0


@dataclass(slots=True)
class Generation:
    """One reply as it was sampled.

    Attributes:
        token_ids: the reply, its end-of-turn token included where `finish` is `stop`.
        logprobs: per token, its log-probability at the sampling temperature over the kept set.
            Empty where the policy gives none (a URL, a script): such a reply can't be trained on.
        finish: `stop` at an end-of-turn token, `length` where the reply was cut.
        kept: per token, the ids that could have been drawn; None where all could.
        known: tokens of the prompt that were read at an earlier turn already.
    """

    token_ids: list[int]
    logprobs: list[float]
    finish: Finish
    kept: list[tuple[int, ...]] | None = None
    known: int = 0


@runtime_checkable
class Policy(Protocol):
    """Something that plays or designs.

    Attributes:
        name: for metrics and provenance.
        append_only: a conversation grows by appending ids to it. False where the chat template
            rewrites earlier turns (thinking models): then every turn is encoded anew, and is a
            training sample of its own.
        trainable: generations carry log-probabilities of a model that a learner can update.
        context_tokens: prompt and reply together have at most so many; None where it has no say.
    """

    name: str
    append_only: bool
    trainable: bool
    context_tokens: int | None

    def encode_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
    ) -> list[int]:
        """Encode a conversation, ready for a reply; contents never yield special tokens."""
        ...

    def extend_chat(self, messages: Sequence[Message], last_token: int | None = None) -> list[int]:
        """Encode what follows a sampled reply that ended with `last_token`, up to the next one."""
        ...

    def generate(
        self, prompts: Sequence[list[int]], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Generation]:
        """Draw one reply a prompt; reply i depends on prompt i and seed i.

        Raises:
            PolicyError: a prompt can't be answered.
        """
        ...

    def converse(
        self,
        prompts: Sequence[list[int]],
        sampling: Sampling,
        seeds: Sequence[int],
        names: Sequence[Hashable],
    ) -> list[Generation]:
        """As `generate`, for the next turns of named conversations.

        Until `forget` is called a policy may keep what it has read of them; a prompt that does not
        go on from there is read anew. The weights must not change in between.
        """
        ...

    def forget(self) -> None:
        """Let go of all that was kept of conversations."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, special tokens included."""
        ...

    def reply_text(self, generation: Generation) -> str:
        """Return a reply's text without its end-of-turn token."""
        ...
