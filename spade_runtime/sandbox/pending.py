"""A request in flight: what there is to write, what came, and when its time is up.

The one event-driven core. It never waits: whoever drives it (`channel` one at a time, `drive` many
at once, asyncio) calls `pump` when the pipe is ready and `expire` when `wait_ms` has passed.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from spade_runtime.errors import EnvFault, HostError
from spade_runtime.sandbox.budget import Budget
from spade_runtime.sandbox.exchange import Exchange, WireViolation
from spade_runtime.sandbox.verdicts import overdue, violated

READ_BYTES = 65536


class Pending:
    """One request to one child.

    Args:
        requests: write end of the child's request pipe, non-blocking.
        replies: read end of its reply pipe, non-blocking.
        data: the request's bytes.
        exchange: collects the reply.
        budget: the time it may take.
        ended: judges a child that closed its pipe.
        then: gives what the reply to a second request, sent along, is collected and timed by; asked
            when the first reply is whole, which is when the second one's time begins.

    Attributes:
        fault: why it failed, None while it has not.
        before: the first of two replies, once it is whole.
    """

    __slots__ = (
        "_data",
        "_ended",
        "_then",
        "before",
        "budget",
        "exchange",
        "fault",
        "replies",
        "requests",
    )

    def __init__(
        self,
        requests: int,
        replies: int,
        data: bytes,
        exchange: Exchange,
        budget: Budget,
        ended: Callable[[], EnvFault | HostError],
        then: Callable[[], tuple[Exchange, Budget]] | None = None,
    ) -> None:
        self.requests = requests
        self.replies = replies
        self.exchange = exchange
        self.budget = budget
        self.fault: EnvFault | HostError | None = None
        self._data = data
        self._ended = ended
        self._then = then
        self.before: Exchange | None = None

    @property
    def writing(self) -> bool:
        """Whether part of the request still has to be written."""
        return bool(self._data)

    @property
    def settled(self) -> bool:
        """Whether the reply is whole, or will never be."""
        return self.fault is not None or (self.exchange.done and self._then is None)

    def send(self) -> None:
        """Write what goes without waiting; there is nothing to read yet."""
        try:
            self._write()
        except (EnvFault, HostError) as fault:
            self.fault = fault

    def pump(self) -> bool:
        """Write and read what goes without waiting.

        Returns:
            Whether it is settled.
        """
        if self.fault is None:
            try:
                if self._data:
                    self._write()
                self._read()
            except (EnvFault, HostError) as fault:
                self.fault = fault
        return self.settled

    def expire(self) -> bool:
        """Look at the clocks; what came in the meantime still counts.

        Returns:
            Whether it is settled.
        """
        if not self.pump() and self.budget.spent():
            self.fault = overdue(self.budget)
        return self.settled

    def wait_ms(self) -> int:
        """Milliseconds after which `expire` is due."""
        return self.budget.wait_ms()

    def _write(self) -> None:
        try:
            self._data = self._data[os.write(self.requests, self._data) :]
        except BlockingIOError:
            return
        except OSError:
            raise self._ended() from None

    def _read(self) -> None:
        try:
            chunk = os.read(self.replies, READ_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            raise self._ended()
        self._feed(chunk)
        if self.exchange.done and self._then is not None:
            self.before = self.exchange
            self.exchange, self.budget = self._then()
            self._then = None
            if self.before.rest:
                self._feed(self.before.rest)

    def _feed(self, data: bytes) -> None:
        try:
            moved = self.exchange.feed(data)
        except WireViolation as problem:
            raise violated(problem) from None
        if moved and not self.budget.progress():
            raise overdue(self.budget)
