"""What can be asked of a child: the request, how many answers it has, how long each may take."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from spade_runtime.sandbox import wire
from spade_runtime.sandbox.wire import HEADER, Request
from spade_runtime.spec import Limits

_encode = msgspec.msgpack.Encoder().encode
_NONCE_TOP = 1 << 62


@dataclass(slots=True)
class Order:
    """One request, not yet sent.

    Attributes:
        phase: the call, a key of `exchange.DECODERS`.
        request: the message; its nonce is drawn when the order is made, so it is sent once.
        count: items that the reply must have.
        seconds: processor time of one call.
        sent: what each slot was given, for evidence.
        then: another order, sent along: the child goes on to it without waiting for the parent.
    """

    phase: str
    request: Request
    count: int
    seconds: float
    sent: Sequence[Any] = ()
    then: Order | None = None

    @property
    def whole(self) -> float:
        """Processor time of all calls, those of the order behind it included."""
        mine = self.seconds * self.count
        return mine if self.then is None else mine + self.then.whole

    def framed(self) -> bytes:
        """The bytes to send."""
        try:
            body = _encode(self.request)
        except UnicodeEncodeError:
            # A lone surrogate in an agent's text is no reason to stop: it is shown as "?".
            self._replace_surrogates()
            body = _encode(self.request)
        rest = b"" if self.then is None else self.then.framed()
        return HEADER.pack(len(body)) + body + rest

    def _replace_surrogates(self) -> None:
        if isinstance(self.request, wire.Step):
            actions = self.request.actions
            self.request.actions = [text.encode("utf-8", "replace").decode() for text in actions]
        elif isinstance(self.request, wire.Tool):
            self.request.calls = [
                (name.encode("utf-8", "replace").decode(), arguments, turn)
                for name, arguments, turn in self.request.calls
            ]


def _nonce() -> int:
    # Drawn, never counted: a child could forge the reply to a number that it can foresee. The top
    # bit is set, since a small number takes less memory in the child and moves what comes after.
    return int.from_bytes(os.urandom(8), "little") >> 1 | _NONCE_TOP


def inspect(limits: Limits, source: str, *, policy: bool) -> Order:
    """The static gates."""
    request = wire.Inspect(_nonce(), source, policy, limits.printed_bytes, limits.reply_bytes)
    return Order("inspect", request, 1, limits.load_seconds)


def load(limits: Limits, source: str, reading: wire.Reading, *, policy: bool) -> Order:
    """The module, as another child has read it."""
    seen, code = reading.inspection, reading.code
    request = wire.Load(
        _nonce(),
        code,
        source if code is None else "",
        policy,
        seen.class_name or "",
        seen.kind == "tool_use",
        seen.dialect or "contract",
        # A library that draws from them behind the curated modules.
        "networkx" in source,
        limits.printed_bytes,
        limits.reply_bytes,
    )
    return Order("load", request, 1, limits.load_seconds)


def reset(
    limits: Limits, slots: Sequence[int], seeds: Sequence[int], *, fresh: bool = True
) -> Order:
    """A fresh instance in each slot, or the one that it holds reset again."""
    request = wire.Reset(_nonce(), list(slots), list(seeds), fresh)
    return Order("reset", request, len(slots), limits.reset_seconds)


def step(limits: Limits, slots: Sequence[int], actions: Sequence[str]) -> Order:
    """One step in each slot."""
    request = wire.Step(_nonce(), list(slots), list(actions))
    return Order("step", request, len(slots), limits.step_seconds, actions)


def tool(limits: Limits, slots: Sequence[int], calls: Sequence[tuple[str, bytes, int]]) -> Order:
    """One tool call in each slot."""
    request = wire.Tool(_nonce(), list(slots), list(calls))
    return Order("tool", request, len(slots), limits.step_seconds, calls)


def criteria(limits: Limits, slots: Sequence[int], turns: Sequence[int]) -> Order:
    """Whether a user turn is done, in each slot."""
    request = wire.Criteria(_nonce(), list(slots), list(turns))
    return Order("criterion", request, len(slots), limits.step_seconds)


def solution(limits: Limits, slots: Sequence[int]) -> Order:
    """The reference solution of each slot."""
    request = wire.Solution(_nonce(), list(slots))
    return Order("solution", request, len(slots), limits.reset_seconds)


def close(limits: Limits, slots: Sequence[int]) -> Order:
    """The end of each slot's instance."""
    return Order("close", wire.Close(_nonce(), list(slots)), len(slots), limits.step_seconds)


def program(limits: Limits, source: str, stdin: str, argv: Sequence[str]) -> Order:
    """A whole program; what it may print has to fit into a reply."""
    room = min(limits.printed_bytes, limits.reply_bytes)
    request = wire.Run(_nonce(), source, stdin, list(argv), room)
    return Order("program", request, 1, limits.load_seconds)


OF_CALLS: dict[str, Callable[[Limits, Sequence[int], Sequence[Any]], Order]] = {
    "reset": reset,
    "moves": step,
    "tool": tool,
}
"""What `spade_runtime.sandbox.session` asks for in the course of an episode."""
