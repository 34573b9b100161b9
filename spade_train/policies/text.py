"""Policies without a tokenizer: a conversation as bytes behind out-of-band role marks.

Scripts and URLs answer texts, not ids. So that one rollout serves all, such a policy encodes a
conversation as its UTF-8 bytes (0 to 255), opened by a mark a message (256 and above). No content
can fake a mark, because no byte is one.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from spade_train.errors import PolicyError
from spade_train.policies.base import Finish, Generation, Message, Policy, Sampling

END = 256
_TOOLS = 257
_ROLES = {"system": 258, "user": 259, "assistant": 260, "tool": 261}
_MARKS = {mark: role for role, mark in _ROLES.items()}
# About what tokenizers make of English and of code.
BYTES_A_TOKEN = 4


def prompt_tokens(policy: Policy, messages: Sequence[Message]) -> int:
    """Return how many tokens a prompt has, for limits that are meant in a model's tokens.

    What a policy without a tokenizer encodes are bytes, which would fill a context four times as
    fast.
    """
    if isinstance(policy, TextPolicy):
        return policy.count_tokens(messages)
    return len(policy.encode_chat(messages))


def encode(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None) -> list[int]:
    """Return the ids of messages, without a mark for the reply."""
    ids: list[int] = []
    if tools:
        ids += [_TOOLS, *json.dumps(list(tools)).encode(), END]
    for message in messages:
        if message["role"] not in _ROLES:
            raise PolicyError(f"no such role: {message['role']!r}; known: {', '.join(_ROLES)}")
        ids += [_ROLES[message["role"]], *str(message["content"]).encode(errors="replace"), END]
    return ids


def parse(ids: Sequence[int]) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    """Return the messages and tools of ids; an open last message (the reply's mark) is left out."""
    messages: list[dict[str, str]] = []
    tools: list[dict[str, Any]] = []
    mark, start = -1, 0
    for place, token in enumerate(ids):
        if token > END:
            mark, start = token, place + 1
        elif token == END:
            text = bytes(ids[start:place]).decode(errors="replace")
            if mark == _TOOLS:
                tools = json.loads(text)
            else:
                messages.append({"role": _MARKS[mark], "content": text})
    return messages, tools


class TextPolicy:
    """Base of policies that answer conversations with texts; subclasses define `generate`.

    Args:
        name: for metrics and provenance.
        measure: a policy whose tokenizer measures prompts; by default they are estimated.
    """

    append_only = True
    trainable = False

    def __init__(self, name: str, *, measure: Policy | None = None) -> None:
        self.name = name
        self.context_tokens: int | None = None
        self._measure = measure

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Return how many tokens a prompt has, or will have about."""
        if self._measure is not None:
            return len(self._measure.encode_chat(messages))
        return -(-len(self.encode_chat(messages)) // BYTES_A_TOKEN)

    def encode_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
    ) -> list[int]:
        """Encode a conversation as marked bytes."""
        ids = encode(messages, tools)
        return [*ids, _ROLES["assistant"]] if add_generation_prompt else ids

    def extend_chat(self, messages: Sequence[Message], last_token: int | None = None) -> list[int]:
        """Encode what follows a reply, and the mark of the next one."""
        close = [] if last_token == END else [END]
        return [*close, *encode(messages, None), _ROLES["assistant"]]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids; marks show as `[role]`."""
        text = bytearray()
        for token in ids:
            if token <= 255:
                text.append(token)
            elif token != END:
                text += f"[{_MARKS.get(token, 'tools')}]".encode()
        return text.decode(errors="replace")

    def reply_text(self, generation: Generation) -> str:
        """Return a reply's text."""
        return self.decode(generation.token_ids)

    def generate(
        self, prompts: Sequence[list[int]], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Generation]:
        """Answer each prompt; subclasses do."""
        raise NotImplementedError

    def converse(
        self,
        prompts: Sequence[list[int]],
        sampling: Sampling,
        seeds: Sequence[int],
        names: Sequence[Hashable],
    ) -> list[Generation]:
        """Answer each prompt; nothing is kept of it."""
        return self.generate(prompts, sampling, seeds)

    def forget(self) -> None:
        """Nothing was kept."""

    @staticmethod
    def spoken(text: str, finish: Finish = "stop") -> Generation:
        """Return a reply of this text."""
        ids = list(text.encode(errors="replace"))
        return Generation([*ids, END] if finish == "stop" else ids, [], finish)
