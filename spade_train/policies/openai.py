"""Any server that speaks the OpenAI chat protocol: an external designer, a judge, an evaluation.

Standard library only. Requests run side by side; each is tried again after a time-out, a dropped
connection, a rate limit or a server error, as long as the server asks for or a doubling pause.
"""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from spade_train.errors import PolicyError, PolicyUnavailable
from spade_train.policies.base import Generation, Sampling
from spade_train.policies.text import TextPolicy, parse

_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


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


class _Retry(Exception):
    """A request that may be sent again, after so many seconds where the server said so."""

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


class OpenAIPolicy(TextPolicy):
    """A model behind a URL; its replies carry no log-probabilities and are never trained on."""

    def __init__(self, endpoint: Endpoint, *, name: str | None = None) -> None:
        super().__init__(name or endpoint.model)
        self.endpoint = endpoint

    def generate(
        self, prompts: Sequence[list[int]], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Generation]:
        """Ask for one reply a prompt, `concurrency` at a time.

        Raises:
            PolicyUnavailable: a request failed for good; what was answered comes with it.
            PolicyError: the server refused a request (a wrong model, key or field).
        """
        key = os.environ.get(self.endpoint.key_variable, "")
        with ThreadPoolExecutor(max_workers=max(1, self.endpoint.concurrency)) as pool:
            jobs = [
                pool.submit(self._ask, prompt, sampling, seed, key)
                for prompt, seed in zip(prompts, seeds, strict=True)
            ]
            # After a failure those not begun would fail alike; those in flight are waited for.
            for job in wait(jobs, return_when=FIRST_EXCEPTION).not_done:
                job.cancel()
        answered = {i: job for i, job in enumerate(jobs) if not job.cancelled()}
        failures = [job.exception() for job in answered.values() if job.exception()]
        if not failures:
            return [job.result() for job in jobs]
        finished = {i: job.result() for i, job in answered.items() if not job.exception()}
        for failure in failures:
            if isinstance(failure, PolicyUnavailable):
                raise PolicyUnavailable(str(failure), finished) from failure
        raise failures[0] or AssertionError

    def _ask(self, prompt: list[int], sampling: Sampling, seed: int, key: str) -> Generation:
        body = json.dumps(self._body(prompt, sampling, seed)).encode()
        pause = self.endpoint.pause
        for left in range(self.endpoint.retries, -1, -1):
            try:
                return self._read(self._send(body, key))
            except _Retry as trouble:
                if not left:
                    raise PolicyUnavailable(
                        f"{self.endpoint.url} gave no answer after "
                        f"{self.endpoint.retries + 1} tries: {trouble}; check that the server "
                        f"runs, then go on with `spade resume`"
                    ) from trouble
                wait = pause if trouble.after is None else trouble.after
                time.sleep(min(wait, self.endpoint.longest_pause))
                pause *= 2
        raise AssertionError("unreachable")

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

    def _send(self, body: bytes, key: str) -> Any:
        request = urllib.request.Request(
            self.endpoint.url.rstrip("/") + "/chat/completions",
            data=body,
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=self.endpoint.timeout) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as error:
            with error:
                text = error.read(2000).decode(errors="replace")
                after = _seconds(error.headers.get("Retry-After"))
            if error.code in _AGAIN:
                raise _Retry(f"HTTP {error.code}: {text[:300]}", after) from error
            raise PolicyError(
                f"{self.endpoint.url} refused the request with HTTP {error.code}: "
                f"{text.replace(key, '***')[:300] if key else text[:300]}"
            ) from error
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            raise _Retry(f"{type(error).__name__}: {error}") from error
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise _Retry(f"the answer is no JSON: {error}") from error

    def _read(self, answer: Any) -> Generation:
        try:
            choice = answer["choices"][0]
            message = choice["message"]
            text = message.get("content") or ""
            calls = message.get("tool_calls") or []
            for call in calls:
                function = call["function"]
                text += "\n<tool_call>\n" + _call_text(function) + "\n</tool_call>"
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise PolicyError(
                f"{self.endpoint.url} answered something that is no chat completion: "
                f"{str(answer)[:300]}"
            ) from error
        return self.spoken(text, "length" if choice.get("finish_reason") == "length" else "stop")


def _call_text(function: Mapping[str, Any]) -> str:
    """Return a structured call in the text form, its arguments as the server sent them."""
    arguments = function.get("arguments") or "{}"
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    return f'{{"name": {json.dumps(function["name"])}, "arguments": {arguments}}}'


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header is not None else None
    except ValueError:
        return None
