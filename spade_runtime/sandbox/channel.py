"""`RawChild`: one child, one class, and calls that return claims or raise typed faults."""

from __future__ import annotations

import contextlib
import math
import os
import select
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spade_runtime.errors import EnvFault, Evidence, HostError, UsageError
from spade_runtime.sandbox import orders
from spade_runtime.sandbox.budget import Budget, cpu_clock, grant
from spade_runtime.sandbox.exchange import Exchange
from spade_runtime.sandbox.orders import Order
from spade_runtime.sandbox.pending import READ_BYTES, Pending
from spade_runtime.sandbox.placement import ALONE_SECONDS, CROWDED_SECONDS, Placement
from spade_runtime.sandbox.verdicts import ended
from spade_runtime.sandbox.wire import (
    HELLO,
    Bad,
    Columns,
    Inspection,
    LoadReply,
    Raised,
    RawClosed,
    RawCriterion,
    RawReset,
    RawSolution,
    RawStep,
    RawTool,
)
from spade_runtime.sandbox.workers import WORKER_SECONDS, Workers

if TYPE_CHECKING:
    from spade_runtime.sandbox.nursery import Hatchling, Nursery
    from spade_runtime.spec import Limits

_HELLO_SECONDS = 30.0
_ACTION_SHOWN = 200
_PRINTING = frozenset({"load", "reset", "step", "tool", "criterion", "solution", "close"})
_QUICK = ("step", "reset", "tool", "criterion")


class RawChild:
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
        workers: Workers,
        isolation: str,
    ) -> None:
        self.instances = instances
        self.limits = limits
        self.isolation = isolation
        self.fault: EnvFault | HostError | None = None
        self._nursery = nursery
        self._child = hatchling
        self._source = source
        self._policy = policy
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
        self._lease = weakref.finalize(self, _end, nursery, hatchling)

    # --- the calls ---------------------------------------------------------------------------

    def inspect(self) -> Inspection:
        """Run the static gates on the source, before any of it has run."""
        order = orders.inspect(self.limits, self._source, policy=self._policy)
        reading: Inspection = self.run(order)[0]
        return reading

    def load(self) -> LoadReply:
        """Run the module and find its class; call `inspect` first."""
        reply: LoadReply = self.run(orders.load(self.limits))[0]
        return reply

    def reset(
        self, slots: Sequence[int], seeds: Sequence[int], *, fresh: bool = True
    ) -> list[RawReset | Raised | Bad]:
        """Make a fresh instance in each slot, seeded, and call its `reset`.

        With `fresh` off the instances that the slots hold are seeded and reset again.
        """
        return self.run(orders.reset(self.limits, slots, seeds, fresh=fresh))

    def step(self, slots: Sequence[int], actions: Sequence[str]) -> list[RawStep | Raised | Bad]:
        """Call `step` once for each slot named; one named several times takes several steps."""
        return self.run(orders.step(self.limits, slots, actions))

    def moves(
        self, slots: Sequence[int], actions: Sequence[str]
    ) -> list[RawStep | Raised | Bad] | Columns:
        """The same as `step`, by column where nothing was out of the ordinary."""
        return self.exchange(orders.step(self.limits, slots, actions))

    def tool(
        self, slots: Sequence[int], calls: Sequence[tuple[str, bytes, int]]
    ) -> list[RawTool | Raised]:
        """Run one declared tool in each slot, then ask whether the user's turn is done.

        Args:
            slots: one instance for each call.
            calls: name, arguments as JSON, and the user turn (from 0) to ask about.
        """
        return self.run(orders.tool(self.limits, slots, calls))

    def criteria(self, slots: Sequence[int], turns: Sequence[int]) -> list[RawCriterion | Raised]:
        """Ask whether a user turn (from 0) is done now, in each slot."""
        return self.run(orders.criteria(self.limits, slots, turns))

    def solution(self, slots: Sequence[int]) -> list[RawSolution | Raised]:
        """Ask for the reference solution of each slot's present state."""
        return self.run(orders.solution(self.limits, slots))

    def close_instances(self, slots: Sequence[int]) -> list[Raised | None]:
        """Call the class's `close`, where it has one, and forget the instances."""
        items: list[RawClosed | Raised] = self.run(orders.close(self.limits, slots))
        return [item if isinstance(item, Raised) else None for item in items]

    # --- one request -------------------------------------------------------------------------

    def run(self, order: Order) -> list[Any]:
        """Send a request and wait for its reply.

        Raises:
            EnvFault: the child is lost by its own fault.
            HostError: the machine is at fault.
        """
        found = self.exchange(order)
        return found.rows() if isinstance(found, Columns) else found

    def exchange(self, order: Order) -> list[Any] | Columns:
        """As `run`; steps of games are left as columns where they came so.

        Raises:
            EnvFault: the child is lost by its own fault.
            HostError: the machine is at fault.
        """
        if order.count == 0:
            return []
        pending = self.start(order, near=self.expected(order) < ALONE_SECONDS)
        try:
            pending.send()
            while not pending.settled:
                self._wait(pending)
        except BaseException:
            self.abandon()
            raise
        return self.finish(order, pending)

    def expected(self, order: Order) -> float:
        """Processor time that an order may take, in seconds, going by the last one of its kind."""
        return self._pace.get(order.phase, math.inf) * order.count

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
            UsageError: it would wait for a request of this very thread.
        """
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
            exchange = Exchange(order.phase, order.request.nonce, order.count, self._reply_bytes)
            self._greet()
            budget = Budget(self._child.pid, order.seconds, order.count, self.limits.wall_factor)
            self._cpu_granted = grant(self._child.pid, budget, self._cpu_granted)
            self._place(order, budget, near=near)
            child = self._child
            return Pending(child.requests, child.replies, data, exchange, budget, self._ended)
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
                claims = pending.exchange.claims
                if order.phase in _PRINTING and type(claims) is list:
                    self._note_printed(claims)
                return claims
            fault = self._blamed(pending.fault, order, pending.exchange.received)
            self.fault = fault
            self._close()
        finally:
            self._leave()
        raise fault

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

    def _place(self, order: Order, budget: Budget, *, near: bool) -> None:
        """Choose the processor, and learn from the clock what the last request took."""
        cpu, last = budget.cpu_at_start, self._last
        if last is not None:
            self._pace[last[0]] = (cpu - last[2]) / last[1]
        self._last = (order.phase, order.count, cpu) if order.phase in self._pace else None
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

    def _blamed(
        self, fault: EnvFault | HostError, order: Order, place: int
    ) -> EnvFault | HostError:
        if isinstance(fault, EnvFault):
            action = order.sent[place] if place < len(order.sent) else None
            seen = fault.evidence
            fault.evidence = Evidence(
                phase=order.phase,
                exit_status=seen.exit_status,
                signal=seen.signal,
                last_action=str(action)[:_ACTION_SHOWN] if action is not None else None,
                printed=self._printed,
                place=place,
            )
        return fault

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


def _end(nursery: Nursery, hatchling: Hatchling) -> None:
    hatchling.kill()
    nursery.forget(hatchling)
    hatchling.close()
