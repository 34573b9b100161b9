"""Policies that follow a script: for tests, baselines and the floor of a comparison."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence

from spade_train.policies.base import Generation, Sampling
from spade_train.policies.text import TextPolicy, parse

_WORD = re.compile(r"[^\s,.;:!?()\[\]{}'\"]+")

Script = Callable[[Sequence[Mapping[str, str]], random.Random], str]
"""From the conversation and a seeded generator to the reply."""


class ScriptedPolicy(TextPolicy):
    """Answers with a function of the conversation.

    Args:
        script: gets the messages so far and a generator seeded for this reply.
        name: for metrics and provenance.
    """

    def __init__(self, script: Script, name: str = "scripted") -> None:
        super().__init__(name)
        self._script = script

    def generate(
        self, prompts: Sequence[list[int]], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Generation]:
        """Answer each prompt by the script."""
        replies = []
        for prompt, seed in zip(prompts, seeds, strict=True):
            text = self._script(parse(prompt)[0], random.Random(seed))
            replies.append(self.spoken(text))
        return replies


def fixed(*texts: str) -> ScriptedPolicy:
    """Say these texts in turn, the last one for ever.

    >>> policy = fixed("north", "east")
    >>> prompt = policy.encode_chat([{"role": "user", "content": "Where to?"}])
    >>> policy.reply_text(policy.generate([prompt], Sampling(), [0])[0])
    'north'
    """

    def script(messages: Sequence[Mapping[str, str]], _: random.Random) -> str:
        said = sum(message["role"] == "assistant" for message in messages)
        return texts[min(said, len(texts) - 1)]

    return ScriptedPolicy(script, "fixed")


def uniform() -> ScriptedPolicy:
    """Box a random word of what was said last: the random player of comparisons."""

    def script(messages: Sequence[Mapping[str, str]], rng: random.Random) -> str:
        words = _WORD.findall(messages[-1]["content"]) if messages else []
        return f"\\boxed{{{rng.choice(words)}}}" if words else ""

    return ScriptedPolicy(script, "random")


def solution(answers: Mapping[str, Sequence[str]]) -> ScriptedPolicy:
    """Play known solutions: the message after each opening observation, turn by turn.

    Args:
        answers: first observation -> the messages that solve that episode. A conversation whose
            last opening contains none of them gets an empty reply.
    """

    def script(messages: Sequence[Mapping[str, str]], _: random.Random) -> str:
        said = sum(message["role"] == "assistant" for message in messages)
        opening = next((m["content"] for m in messages if m["role"] == "user"), "")
        for observation, texts in answers.items():
            if observation in opening:
                return texts[said] if said < len(texts) else ""
        return ""

    return ScriptedPolicy(script, "solution")
