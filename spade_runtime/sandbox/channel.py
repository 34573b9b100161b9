"""`RawChild`: one child, one class, and calls that return claims or raise typed faults."""

from __future__ import annotations

import contextlib
import math
import os
import select
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from spade_runtime.errors import EnvFault, HostError, UsageError
from spade_runtime.sandbox.budget import Budget, cpu_clock, grant
from spade_runtime.sandbox.calls import Calls
from spade_runtime.sandbox.exchange import Exchange
from spade_runtime.sandbox.forks import generation, must_be_own
from spade_runtime.sandbox.orders import Order
from spade_runtime.sandbox.pending import READ_BYTES, Pending
from spade_runtime.sandbox.placement import ALONE_SECONDS, CROWDED_SECONDS, Hold, Placement
from spade_runtime.sandbox.verdicts import ended, with_evidence
from spade_runtime.sandbox.wire import HELLO, Bad, Columns, Reading
from spade_runtime.sandbox.workers import WORKER_SECONDS, Workers

if TYPE_CHECKING:
    from spade_runtime.sandbox.nursery import Hatchling, Nursery
    from spade_runtime.spec import Limits

_HELLO_SECONDS = 30.0
_PRINTING = frozenset({"load", "reset", "step", "tool", "criterion", "solution", "close"})
_QUICK = ("step", "reset", "tool", "criterion")

Reply = list[Any] | Columns | EnvFault
Both = tuple[Reply, Reply]
"""The replies to two requests that were sent together."""


class RawChild(Calls):
    """A child process that runs one class. Thread-safe; one request at a time.

    Every call returns one value for each slot: a claim, or `Raised` where an exception left the
    class's code. A child that dies, hangs or breaks the protocol is killed, and the call (and
    every later one) raises the `EnvFault` that says why. One that is dropped without `kill` is
    ended when Python collects it.

    Attributes:
        instances: how many slots it was opened for.
        limits: what it may use.
        isolation: the level and layers it runs under.
        fault: why it is gone, None while it serves.
    """

    def __init__(
        self,
        nursery: Nursery,
        hatchling: Hatchling,
        source: str,
        *,
        instances: int,
        limits: Limits,
        policy: bool,
        read: Callable[[], Reading],
        workers: Workers,
        isolation: str,
    ) -> None:
        super().__init__(source, policy=policy, limits=limits, read=read)
        self.instances = instances
        self.isolation = isolation
        self.fault: EnvFault | HostError | None = None
        self._nursery = nursery
        self._child = hatchling
        self._workers = workers
        self._busy = threading.Lock()
        self._asker = 0
        self._state = threading.RLock()
        self._poll = select.poll()
        self._poll.register(hatchling.replies, select.POLLIN)
        self._placement = Placement(hatchling.pid)
        self._near = False
        self._pace: dict[str, float] = dict.fromkeys(_QUICK, 0.0)
        self._last: tuple[str, int, float] | None = None
        self._greeted = False
        self._killed = False
        self._holds_worker = False
        self._cpu_last = 0.0
        self._cpu_granted = 0.0
        self._printed = ""
        self._born = generation()
        self._lease = weakref.finalize(self, _end, nursery, hatchling, self._born)

    # --- one request -------------------------------------------------------------------------

    def exchange(self, order: Order) -> list[Any] | Columns:
        """Send a request and wait for its reply; steps of games stay columns where they came so.

        Raises:
            EnvFault: the child is lost by its own fault.
            HostError: the machine is at fault.
        """
        if order.count == 0:
            return []
        return self.finish(order, self._answered(order))

    def exchange_both(self, order: Order) -> Both:
        """As `exchange`, for an order that has another one behind it.

        A fault is among the results: the first request may have been answered before it.

        Raises:
            HostError: the machine is at fault.
        """
        return self.finish_both(order, self._answered(order))

    def _answered(self, order: Order) -> Pending:
        pending = self.start(order, near=self.expected(order) < ALONE_SECONDS)
        hold = Hold() if self._near else None
        try:
            pending.send()
            while not pending.settled:
                self._wait(pending)
        except BaseException:
            self.abandon()
            raise
        finally:
            if hold is not None:
                hold.release()
        return pending

    def expected(self, order: Order) -> float:
        """Processor time that an order may take, in seconds, going by the last one of its kind."""
        mine = self._pace.get(order.phase, math.inf) * order.count
        return mine if order.then is None else mine + self.expected(order.then)

    def spread(self) -> None:
        """Let the child compute on any processor, where it was slow beside this thread."""
        if self._near:
            self._near = False
            self._placement.crowded()

    def start(self, order: Order, *, blocking: bool = True, near: bool = False) -> Pending:
        """Begin a request; `finish` or `abandon` must follow.

        Args:
            order: what to ask.
            blocking: wait for a worker and for the child; otherwise raise where that would wait.
            near: the calling thread is about to wait, and the child may have its processor.

        Raises:
            BlockingIOError: it would have to wait.
            UsageError: it would wait for a request of this very thread, or another process opened
                the child.
        """
        must_be_own(self._born)
        if not self._busy.acquire(blocking=False):
            if blocking and self._asker == threading.get_ident():
                raise UsageError("this thread would wait for itself; await its request first")
            if not (blocking and self._busy.acquire()):
                raise BlockingIOError("the child answers another request")
        self._asker = threading.get_ident()
        self._holds_worker = self._workers.take(blocking=blocking)
        if not self._holds_worker and not blocking:
            self._leave()
            raise BlockingIOError("all workers compute")
        try:
            self._must_serve()
            data = order.framed()
            exchange, then = self._collector(order), order.then
            self._greet()
            budget = self._budget(order)
            self._cpu_granted = grant(self._child.pid, budget, order.whole, self._cpu_granted)
            self._place(order, budget, near=near)
            child = self._child
            after = None if then is None else lambda: (self._collector(then), self._budget(then))
            ended = self._ended
            return Pending(child.requests, child.replies, data, exchange, budget, ended, after)
        except BaseException as problem:
            if isinstance(problem, EnvFault | HostError) and self.fault is None:
                self.fault = problem
                self._close()
            self._leave()
            raise

    def finish(self, order: Order, pending: Pending) -> list[Any] | Columns:
        """End a settled request and give its items, or raise its fault."""
        try:
            if pending.fault is None:
                if self._near and pending.budget.passed() > CROWDED_SECONDS:
                    self.spread()
                return self._claims(order, pending.exchange)
            fault = with_evidence(pending.fault, order, pending.exchange.received, self._printed)
            self.fault = fault
            self._close()
        finally:
            self._leave()
        raise fault

    def finish_both(self, order: Order, pending: Pending) -> Both:
        """End a settled request that has another one behind it, and give both results."""
        then, before = order.then, pending.before
        assert then is not None  # `finish` is for one alone
        first: Reply = [] if before is None else self._claims(order, before)
        try:
            second: Reply = self.finish(order if before is None else then, pending)
        except EnvFault as fault:
            return (fault if before is None else first, fault)
        return first, second

    def _claims(self, order: Order, exchange: Exchange) -> list[Any] | Columns:
        claims = exchange.claims
        if order.phase in _PRINTING and type(claims) is list:
            self._note_printed(claims)
        return claims

    def yield_worker(self) -> None:
        """Let another request begin while this one still computes."""
        if self._holds_worker:
            self._holds_worker = False
            self._workers.give_back()

    def abandon(self) -> None:
        """Drop a request in mid-reply: the pipe is in no state to go on from, so the child goes."""
        self.fault = HostError("a request was interrupted; open the environment again")
        try:
            self._close()
        finally:
            self._leave()

    def kill(self) -> None:
        """End the child without calling it back; may be called twice, and while a request runs."""
        if self._born != generation():
            return
        with self._state:
            if not self._lease.alive:
                return
            self._killed = True
            self._child.kill()
        # A request that runs elsewhere sees the pipe close, and cleans up itself.
        if self._busy.acquire(blocking=False):
            self._close()
            self._busy.release()

    @property
    def missing(self) -> set[str]:
        """Modules that were to be preloaded and are not installed here."""
        return set(self._nursery.missing)

    @property
    def pid(self) -> int:
        """The child's process, as this one's `/proc` knows it."""
        return self._child.pid

    @property
    def cpu_seconds(self) -> float:
        """Processor time that the child has used, as the kernel counts it."""
        with self._state:
            if self._lease.alive:
                with contextlib.suppress(OSError):
                    self._cpu_last = cpu_clock(self._child.pid)
            return self._cpu_last

    def __enter__(self) -> RawChild:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the child."""
        self.kill()

    # --- within ------------------------------------------------------------------------------

    @property
    def _reply_bytes(self) -> int:
        return self.limits.reply_bytes

    def _wait(self, pending: Pending) -> None:
        if pending.writing:
            poll = select.poll()
            poll.register(pending.replies, select.POLLIN)
            poll.register(pending.requests, select.POLLOUT)
        else:
            poll = self._poll
        wait = pending.wait_ms()
        if self._holds_worker:
            wait = min(wait, int(WORKER_SECONDS * 1000))
        if poll.poll(wait):
            pending.pump()
        else:
            self.yield_worker()
            self.spread()
            pending.expire()

    def _collector(self, order: Order) -> Exchange:
        nonce, followed = order.request.nonce, order.then is not None
        return Exchange(order.phase, nonce, order.count, self._reply_bytes, followed=followed)

    def _budget(self, order: Order) -> Budget:
        return Budget(self._child.pid, order.seconds, order.count, self.limits.wall_factor)

    def _place(self, order: Order, budget: Budget, *, near: bool) -> None:
        """Choose the processor, and learn from the clock what the last request took."""
        cpu, last = budget.cpu_at_start, self._last
        if last is not None:
            self._pace[last[0]] = (cpu - last[2]) / last[1]
        paced = order.then is None and order.phase in self._pace
        self._last = (order.phase, order.count, cpu) if paced else None
        self._near = near and self._placement.near()
        if not near:
            self._placement.free()

    def _greet(self) -> None:
        """Read the four zero bytes of a child that is locked down, before it is given anything."""
        if self._greeted:
            return
        if not self._poll.poll(int(_HELLO_SECONDS * 1000)):
            raise HostError(f"a fresh child did not start within {_HELLO_SECONDS:.0f} s")
        hello = os.read(self._child.replies, READ_BYTES)
        if not hello:
            raise self._ended()
        if hello != HELLO:
            raise HostError("a fresh child did not greet; the installation may be damaged")
        self._greeted = True

    def _ended(self) -> EnvFault | HostError:
        if self._killed:
            return HostError("the child was killed while it answered")
        self.cpu_seconds  # noqa: B018 - notes it while the process can still be asked
        return ended(self._nursery.ending(self._child), greeted=self._greeted)

    def _note_printed(self, items: Sequence[Any]) -> None:
        for item in items:
            if not isinstance(item, Bad) and item.printed_bytes:
                self._printed = item.printed_tail

    def _must_serve(self) -> None:
        if self.fault is not None:
            raise self.fault.with_traceback(None)
        if self._killed or not self._lease.alive:
            raise RuntimeError("this child was killed; open the environment again")

    def _close(self) -> None:
        with self._state:
            self.cpu_seconds  # noqa: B018 - notes it while the process can still be asked
            self._lease()

    def _leave(self) -> None:
        self.yield_worker()
        self._asker = 0  # first: the next one to hold the lock may not have written its name yet
        self._busy.release()


def _end(nursery: Nursery, hatchling: Hatchling, born: int) -> None:
    if born != generation():
        return
    hatchling.kill()
    nursery.forget(hatchling)
    hatchling.close()
