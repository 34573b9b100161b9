"""The one client of servers that speak the OpenAI chat protocol; standard library only.

Policies, agents and the judge ask through it, so that all of them are as patient, guard the key
alike, and fail with the same errors.
"""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from spade_runtime.chat_wire import Reply, Trouble, send, told
from spade_runtime.errors import (
    ServerError,
    ServerGarbled,
    ServerRefused,
    ServerUnavailable,
    UsageError,
)
from spade_runtime.literals import too_deep

__all__ = ["ChatClient", "Completion", "Patience", "key_from"]

# Above what any protocol sends, and below where Python's own walks of a value end.
_ANSWER_DEPTH = 100


SECONDS_MAX = 1_000_000
"""The longest time-out, which every system's clock can hold; it is more than eleven days."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client waits, and how often it asks.

    Attributes:
        timeout: seconds for one request.
        retries: tries after the first one.
        pause: seconds before the first retry; doubles each time.
        longest_pause: seconds that no pause exceeds, also not one that the server asks for.
    """

    timeout: float = 120.0
    retries: int = 3
    pause: float = 1.0
    longest_pause: float = 60.0

    def __post_init__(self) -> None:
        """Refuse a time-out that no socket takes.

        Raises:
            UsageError: it is not above 0, or too long.
        """
        if not 0 < self.timeout <= SECONDS_MAX:
            raise UsageError(
                f"a time-out is above 0 and up to {SECONDS_MAX:,} seconds, not {self.timeout!r}"
            )


@dataclass(frozen=True, slots=True)
class Completion:
    """A message of the model.

    Attributes:
        text: what it says; empty where it only calls tools.
        calls: its tool calls in the protocol's form, the arguments as the server sent them.
        finish: `length` where the server cut the message.
    """

    text: str
    calls: list[dict[str, Any]] = field(default_factory=list)
    finish: Literal["stop", "length"] = "stop"


def key_from(variable: str) -> str:
    """Read a key from the environment; empty where the variable is not set.

    Raises:
        UsageError: it holds what no header can carry.
    """
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise UsageError(
            f"the key in {variable} holds blanks, control characters or letters beyond ASCII, "
            f"which no key does; set {variable} to the key alone"
        )
    return key


class ChatClient:
    """Asks a server; passing troubles are tried again, and no message ever shows the key.

    A time-out, a dropped connection, a rate limit, a server error and an answer that is no JSON
    are passing. Where the server says how long to wait, all requests of this client wait so long.

    Args:
        url: the base address, commonly ending in `/v1`; `/chat/completions` may follow.
        key: sent as a bearer token where it is not empty.
        patience: time-outs, retries and pauses.
        clock, sleep: tell and pass the time between tries, in seconds.

    Raises:
        UsageError: the address is none of http or https.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str = "",
        patience: Patience | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = _checked(url).rstrip("/").removesuffix("/chat/completions").rstrip("/")
        self.patience = patience or Patience()
        self._key = key
        self._clock, self._sleep = clock, sleep
        self._free_at = clock()
        """The time before which the server wants no request."""

    def models(self) -> list[str]:
        """Return the names of the models that the server lists.

        Raises:
            ServerError: as `complete` does.
        """
        answer = self._ask("/models", None)
        # Where a server has no model yet, some say null for a list.
        rows = (answer.get("data") or []) if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            seen = told(f"{answer!r:.400}", self._key)
            raise ServerGarbled(
                f"{self.url} answered something that is no list of models: {seen}. "
                f"Check that the address is right, or name the model"
            )
        named = [row.get("id") for row in rows if isinstance(row, dict)]
        return [_sound(name) for name in named if isinstance(name, str)]

    def complete(self, body: Mapping[str, Any]) -> Completion:
        """Ask for one message.

        Args:
            body: the request: `model`, `messages`, sampling and, where there are any, `tools`.

        Raises:
            ServerRefused: the server won't have the request: a wrong model, key or field.
            ServerUnavailable: there was no usable answer in all tries.
            ServerGarbled: the answer is no chat completion.
        """
        return self._read(self._ask("/chat/completions", dict(body)))

    def complete_all(
        self, bodies: Sequence[Mapping[str, Any]], concurrency: int
    ) -> list[Completion | ServerError | None]:
        """Ask for several messages, some at a time.

        After a failure no further request is begun, since it would fail alike; those in flight are
        waited for.

        Returns:
            A body's completion or error at its place; None where it was never asked.
        """
        found: list[Completion | ServerError | None] = [None] * len(bodies)
        left: queue.SimpleQueue[int] = queue.SimpleQueue()
        for place in range(len(bodies)):
            left.put(place)
        failed = threading.Event()
        broken: list[BaseException] = []

        def work() -> None:
            while not failed.is_set():
                try:
                    place = left.get_nowait()
                    found[place] = self.complete(bodies[place])
                except queue.Empty:
                    return
                except ServerError as error:
                    found[place] = error
                    failed.set()
                except BaseException as error:
                    broken.append(error)
                    failed.set()

        # Daemons: Ctrl-C need not wait for a model that takes minutes.
        workers = [
            threading.Thread(target=work, name="chat-client", daemon=True)
            for _ in range(min(len(bodies), max(1, concurrency)))
        ]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.join()
        finally:
            failed.set()
        if broken:
            raise broken[0]
        return found

    def _ask(self, path: str, body: dict[str, Any] | None) -> Any:
        pause = self.patience.pause
        for left in range(self.patience.retries, -1, -1):
            self._wait_till_free()
            try:
                return self._once(path, body)
            except Trouble as trouble:
                longest = self.patience.longest_pause
                if trouble.after is not None:
                    free_at = self._clock() + min(trouble.after, longest)
                    self._free_at = max(self._free_at, free_at)
                if not left or not trouble.passes:
                    tries = self.patience.retries - left + 1
                    raise ServerUnavailable(
                        f"{self.url} gave no usable answer in {tries} "
                        f"{'try' if tries == 1 else 'tries'}: {trouble}. "
                        f"Check that the server runs and that the address is right"
                    ) from trouble
                if trouble.after is None:
                    self._sleep(min(pause, longest))
                pause *= 2
        raise AssertionError("unreachable")

    def _wait_till_free(self) -> None:
        while (rest := self._free_at - self._clock()) > 0:
            self._sleep(rest)

    def _once(self, path: str, body: dict[str, Any] | None) -> Any:
        reply = send(self.url + path, body, key=self._key, timeout=self.patience.timeout)
        if reply.status >= 300:
            raise ServerRefused(self._refusal(reply))
        if reply.cut:
            raise ServerGarbled(f"{self.url} answered more than {len(reply.data):,} bytes")
        try:
            answer = json.loads(reply.data.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise Trouble(f"the answer is no JSON ({error})") from error
        if too_deep(answer, _ANSWER_DEPTH):
            raise ServerGarbled(
                f"{self.url} answered JSON that is nested more than {_ANSWER_DEPTH} deep"
            )
        return answer

    def _refusal(self, reply: Reply) -> str:
        text = told(reply.data.decode(errors="replace"), self._key)
        said = f"{self.url} refused the request with HTTP {reply.status}: {text}"
        if reply.status == 404 and not self.url.endswith("/v1"):
            return f"{said} (addresses of such servers commonly end in /v1)"
        return said

    def _read(self, answer: Any) -> Completion:
        try:
            choice = answer["choices"][0]
            text, calls = choice["message"].get("content"), choice["message"].get("tool_calls")
            names = [call["function"]["name"] for call in calls or []]
            finish = choice.get("finish_reason")
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            seen = told(f"{answer!r:.400}", self._key)
            raise ServerGarbled(
                f"{self.url} answered something that is no chat completion: {seen}"
            ) from error
        if not isinstance(text, str | None) or not all(isinstance(name, str) for name in names):
            seen = told(f"{choice['message']!r:.400}", self._key)
            raise ServerGarbled(f"{self.url} answered a message of an unknown form: {seen}")
        return Completion(
            _sound(text or ""), _sound(calls or []), "length" if finish == "length" else "stop"
        )


def _sound(value: Any) -> Any:
    """A JSON value without lone surrogates, which JSON's escapes can bring in."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname)
        sound = sound and parts.port != 0 and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        sound = False
    else:
        if parts.username is not None or parts.query or parts.fragment:
            raise UsageError(
                f"a server's address is its base alone; leave out user, password, query and "
                f"fragment: {parts.scheme}://{parts.hostname}..., and give a key by an "
                f"environment variable"
            )
    if not sound:
        raise UsageError(
            f"the server's address {url!r} must begin with http:// or https:// and name a host, "
            f"such as http://localhost:8000/v1"
        )
    return url
