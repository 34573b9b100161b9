"""Token in, token out: what the model sampled stays as sampled (training.md section 4).

A `Conversation` holds the ids of one training sample, a mask that is 1 on sampled tokens and 0 on
all that was said to the model, and the sampler's log-probabilities. It grows by appending.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spade_train.errors import TokenInvariantError
from spade_train.policies.base import Generation, Message, Policy

_LOST = "\ufffd"
# Rounding lifts the log-probability of a certain token above 0 by this much at most.
_TINY = 1e-6


@dataclass(slots=True)
class Conversation:
    """One growing sample.

    Attributes:
        ids: all tokens.
        mask: per token, 1 where the model sampled it.
        logprobs: per token, the sampler's log-probability where `mask` is 1, else 0.
        kept: per token, the ids it could have been; None throughout where nothing was cut off.
    """

    ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    kept: list[tuple[int, ...] | None] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def hear(self, ids: Sequence[int]) -> None:
        """Append what was said to the model."""
        self.ids += ids
        self.mask += [0] * len(ids)
        self.logprobs += [0.0] * len(ids)
        if self.kept is not None:
            self.kept += [None] * len(ids)

    def speak(self, generation: Generation) -> None:
        """Append what the model sampled.

        Raises:
            TokenInvariantError: tokens, log-probabilities and kept sets differ in number.
        """
        count = len(generation.token_ids)
        logprobs = generation.logprobs or [0.0] * count
        if len(logprobs) != count or (generation.kept and len(generation.kept) != count):
            raise TokenInvariantError(
                f"{count} tokens came with {len(logprobs)} log-probabilities and "
                f"{len(generation.kept or ())} kept sets"
            )
        if generation.kept and self.kept is None:
            self.kept = [None] * len(self.ids)
        self.ids += generation.token_ids
        self.mask += [1] * count
        self.logprobs += logprobs
        if self.kept is not None:
            self.kept += generation.kept or [None] * count

    @property
    def spoken(self) -> int:
        """How many tokens the model sampled."""
        return sum(self.mask)


class Dialogue:
    """A conversation with its training samples, in either of the two forms a template allows.

    With an append-only template there is one sample that grows. Where the template rewrites
    earlier turns (thinking is stripped from them), each turn is encoded anew, and each is a sample
    of its own.

    Args:
        policy: encodes; never generates here.
        messages: the opening messages.
        tools: tool schemas for the template.
    """

    def __init__(
        self,
        policy: Policy,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        self._policy = policy
        self._tools = tools
        self.messages: list[Message] = list(messages)
        self.samples: list[Conversation] = []
        self._prompt = policy.encode_chat(self.messages, tools=tools)
        self._heard: list[int] = list(self._prompt)

    @property
    def prompt(self) -> list[int]:
        """The ids that the next reply continues."""
        return self._prompt

    def reply(self, generation: Generation) -> str:
        """Take a sampled reply in, and return its text."""
        text = self._policy.reply_text(generation)
        if not self.samples or not self._policy.append_only:
            self.samples.append(Conversation())
        sample = self.samples[-1]
        sample.hear(self._heard)
        sample.speak(generation)
        self._heard = []
        self.messages.append({"role": "assistant", "content": text})
        return text

    def answer(self, messages: Sequence[Message]) -> None:
        """Take in what the environment said to the last reply."""
        self.messages += messages
        if self._policy.append_only:
            sample = self.samples[-1]
            self._heard = self._policy.extend_chat(messages, sample.ids[-1])
            self._prompt = [*sample.ids, *self._heard]
            return
        # The template itself strips thinking from the turns that it wants it stripped from.
        self._prompt = self._policy.encode_chat(self.messages, tools=self._tools)
        self._heard = list(self._prompt)


def check_sample(sample: Conversation, policy: Policy) -> None:
    """Assert what holds of every sample before it may train.

    Raises:
        TokenInvariantError: lengths differ, a log-probability stands where nothing was sampled, or
            decoding piece by piece and as a whole gives different text.
    """
    count = len(sample.ids)
    if len(sample.mask) != count or len(sample.logprobs) != count:
        raise TokenInvariantError(
            f"{count} ids, {len(sample.mask)} mask bits, {len(sample.logprobs)} log-probabilities"
        )
    if sample.kept is not None and len(sample.kept) != count:
        raise TokenInvariantError(f"{count} ids but {len(sample.kept)} kept sets")
    runs = _runs(sample.mask)
    for start, end in runs:
        bit, logprobs = sample.mask[start], sample.logprobs[start:end]
        sound = [x <= _TINY for x in logprobs] if bit else [x == 0.0 for x in logprobs]
        if not all(sound):
            place = sound.index(False)
            raise TokenInvariantError(
                f"token {start + place} has mask {bit} and log-probability {logprobs[place]!r}"
            )
    whole = policy.decode(sample.ids).replace(_LOST, "")
    pieces = "".join(policy.decode(sample.ids[start:end]) for start, end in runs)
    pieces = pieces.replace(_LOST, "")
    if whole != pieces:
        raise TokenInvariantError(
            f"the ids decode to {whole[:200]!r}, their turns to {pieces[:200]!r}"
        )


def _runs(mask: Sequence[int]) -> list[tuple[int, int]]:
    """Return the stretches of equal mask as (start, end)."""
    bits = bytes(mask)
    runs: list[tuple[int, int]] = []
    start = 0
    while start < len(bits):
        end = bits.find(b"\x00" if bits[start] else b"\x01", start)
        end = len(bits) if end < 0 else end
        runs.append((start, end))
        start = end
    return runs
