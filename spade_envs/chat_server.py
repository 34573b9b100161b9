"""A model behind any address that speaks the OpenAI chat protocol; standard library only."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from spade_envs.agents import INSTRUCTIONS, AgentSettings, View
from spade_runtime.errors import HostError, SpadeError, UsageError

RETRIES = 3
_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_ANSWER_BYTES = 16 * 1024 * 1024


class ChatServerAgent:
    """Asks a server for each message; the tools travel as function schemas.

    Args:
        url: the base address, with or without `/v1`.
        settings: sampling, model, key and time-outs.
        pause: seconds before the first retry; doubles each time.

    Raises:
        UsageError: no model is named and the server does not list exactly one.
        HostError: the server can't be reached.
    """

    def __init__(self, url: str, settings: AgentSettings, *, pause: float = 1.0) -> None:
        self.url = url.rstrip("/").removesuffix("/chat/completions")
        self.settings = settings
        self.pause = pause
        self._key = os.environ.get(settings.key_variable, "")
        self.model = settings.model or self._only_model()
        self.name = self.model

    def reply(self, views: Sequence[View]) -> list[Any]:
        """Ask for all the views' messages, some at a time."""
        with ThreadPoolExecutor(max_workers=max(1, self.settings.concurrency)) as threads:
            return list(threads.map(self._ask, views))

    def _ask(self, view: View) -> Any:
        told = self.settings.system
        if told is None:
            told = INSTRUCTIONS["tool_use" if view.tools else "game"]
        opening = [{"role": "system", "content": told}] if told else []
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [*opening, *view.messages],
            "temperature": self.settings.temperature,
            "top_p": self.settings.top_p,
            "max_tokens": self.settings.max_tokens,
            "seed": view.seed,
        }
        if view.tools:
            body["tools"] = [
                {"type": "function", "function": tool.model_dump(mode="json")}
                for tool in view.tools
            ]
        return self._message(self._send("/chat/completions", body))

    def _message(self, answer: Any) -> Any:
        try:
            message = answer["choices"][0]["message"]
            text, calls = message.get("content"), message.get("tool_calls")
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise SpadeError(
                f"{self.url} answered something that is no chat completion: {answer!r:.200}"
            ) from error
        if not isinstance(text, str | None) or not isinstance(calls, list | None):
            raise SpadeError(f"{self.url} answered a message of an unknown form: {message!r:.200}")
        text = (text or "").encode("utf-8", "replace").decode()
        if calls:
            return {"role": "assistant", "content": text, "tool_calls": calls}
        return text

    def _only_model(self) -> str:
        answer = self._send("/models", None)
        listed = answer.get("data") if isinstance(answer, dict) else None
        names = [str(row["id"]) for row in listed or [] if isinstance(row, dict) and "id" in row]
        if len(names) != 1:
            listing = ", ".join(names[:8]) or "none"
            raise UsageError(
                f"{self.url} lists these models: {listing}; name one with --model-name NAME"
            )
        return names[0]

    def _send(self, path: str, body: dict[str, Any] | None) -> Any:
        pause = self.pause
        for left in range(RETRIES, -1, -1):
            try:
                return self._once(path, body)
            except _Again as trouble:
                if not left:
                    raise HostError(
                        f"{self.url} gave no usable answer in {RETRIES + 1} tries: {trouble}. "
                        "Check that the server runs and that the address is right"
                    ) from trouble
                time.sleep(pause)
                pause *= 2
        raise AssertionError("unreachable")

    def _once(self, path: str, body: dict[str, Any] | None) -> Any:
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=self.settings.timeout) as response:
                return json.loads(response.read(_ANSWER_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                said = self._without_key(error.read(2000).decode(errors="replace"))[:300]
            if error.code in _AGAIN:
                raise _Again(f"HTTP {error.code}: {said}") from error
            raise UsageError(
                f"{self.url} refused the request with HTTP {error.code}: {said}"
            ) from error
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            raise _Again(f"{type(error).__name__}: {error}") from error
        except ValueError as error:
            raise _Again(f"the answer is no JSON ({error})") from error

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


class _Again(Exception):
    """A request that may be sent again."""
