"""Any server that speaks the OpenAI chat protocol: an external designer, a judge, an evaluation.

Requests run side by side through the project's one client, which tries again after a time-out, a
dropped connection, a rate limit or a server error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spade_runtime.chat_client import ChatClient, Completion, Patience, key_from
from spade_runtime.errors import ServerError, ServerUnavailable
from spade_train.errors import PolicyRefused, PolicyUnavailable
from spade_train.policies.base import Generation, Policy, Sampling
from spade_train.policies.text import TextPolicy, parse


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how to ask.

    Attributes:
        url: the base, ending in `/v1` or the like; `/chat/completions` is added.
        model: the server's name of the model.
        key_variable: environment variable that holds the key; never written to a run folder.
        concurrency: requests in flight.
        timeout: seconds for one request.
        retries: tries after the first one.
        pause: seconds before the first retry; doubles up to `longest_pause`.
        extra: further fields of the request body.
    """

    url: str
    model: str
    key_variable: str = "OPENAI_API_KEY"
    concurrency: int = 16
    timeout: float = 120.0
    retries: int = 5
    pause: float = 1.0
    longest_pause: float = 60.0
    extra: Mapping[str, Any] = field(default_factory=dict)


class OpenAIPolicy(TextPolicy):
    """A model behind a URL; its replies carry no log-probabilities and are never trained on."""

    def __init__(
        self, endpoint: Endpoint, *, name: str | None = None, measure: Policy | None = None
    ) -> None:
        super().__init__(name or endpoint.model, measure=measure)
        self.endpoint = endpoint

    def generate(
        self, prompts: Sequence[list[int]], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Generation]:
        """Ask for one reply a prompt, `concurrency` at a time.

        Raises:
            PolicyUnavailable: a request failed for good; what was answered comes with it.
            PolicyRefused: the server refused some requests, or all (a wrong model, key or field);
                what was answered comes with it.
        """
        pairs = zip(prompts, seeds, strict=True)
        bodies = [self._body(prompt, sampling, seed) for prompt, seed in pairs]
        finished: dict[int, Generation] = {}
        refused: dict[int, ServerError] = {}
        while left := [i for i in range(len(bodies)) if i not in finished and i not in refused]:
            # It stops at the first failure, which may be one prompt's alone: ask for the rest.
            asked = self._client().complete_all(
                [bodies[i] for i in left], self.endpoint.concurrency
            )
            pairs_asked = list(zip(left, asked, strict=True))
            finished |= {
                i: self._read(row) for i, row in pairs_asked if isinstance(row, Completion)
            }
            failed = {i: row for i, row in pairs_asked if isinstance(row, ServerError)}
            for failure in failed.values():
                if isinstance(failure, ServerUnavailable):
                    said = f"{failure}; then go on with `spade resume`"
                    raise PolicyUnavailable(said, finished) from failure
            refused |= failed
            if len(refused) > 1 and not finished:  # not a prompt's fault: it will refuse the rest
                break
        if refused:
            first = next(iter(refused.values()))
            reasons = {
                i: str(refused.get(i, first)) for i in range(len(bodies)) if i not in finished
            }
            raise PolicyRefused(str(first), reasons, finished) from first
        return [finished[i] for i in range(len(bodies))]

    def _client(self) -> ChatClient:
        where = self.endpoint
        patience = Patience(where.timeout, where.retries, where.pause, where.longest_pause)
        return ChatClient(where.url, key=key_from(where.key_variable), patience=patience)

    def _body(self, prompt: list[int], sampling: Sampling, seed: int) -> dict[str, Any]:
        messages, tools = parse(prompt)
        body: dict[str, Any] = {
            "model": self.endpoint.model,
            "messages": messages,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_tokens,
            "seed": seed % 2**31,
            **self.endpoint.extra,
        }
        if sampling.top_k:
            body["top_k"] = sampling.top_k
        if tools:
            body["tools"] = [{"type": "function", "function": tool} for tool in tools]
        return body

    def _read(self, answer: Completion) -> Generation:
        calls = [_call_text(call["function"]) for call in answer.calls]
        text = answer.text + "".join(f"\n<tool_call>\n{call}\n</tool_call>" for call in calls)
        return self.spoken(text, answer.finish)


def _call_text(function: Mapping[str, Any]) -> str:
    """Return a structured call in the text form, its arguments as the server sent them."""
    arguments = function.get("arguments") or "{}"
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    return f'{{"name": {json.dumps(function["name"])}, "arguments": {arguments}}}'
