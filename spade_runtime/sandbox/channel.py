"""`RawChild`: one child, one class, and calls that return claims or raise typed faults."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from spade_runtime.errors import EnvFault, Evidence, HostError
from spade_runtime.sandbox import wire
from spade_runtime.sandbox.budget import Budget, cpu_clock, grant
from spade_runtime.sandbox.exchange import Exchange, WireViolation
from spade_runtime.sandbox.verdicts import ended, overdue, violated
from spade_runtime.sandbox.wire import (
    HELLO,
    Bad,
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

if TYPE_CHECKING:
    from spade_runtime.sandbox.nursery import Hatchling, Nursery
    from spade_runtime.spec import Limits

_READ_BYTES = 65536
_HELLO_SECONDS = 30.0
_ACTION_SHOWN = 200
_encode = msgspec.msgpack.Encoder().encode


class RawChild:
    """A child process that runs one class. Thread-safe; one request at a time.

    Every call returns one value for each slot: a claim, or `Raised` where an exception left the
    class's code. A child that dies, hangs or breaks the protocol is killed, and the call (and
    every later one) raises the `EnvFault` that says why.

    Attributes:
        instances: how many slots it was opened for.
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
        workers: threading.BoundedSemaphore,
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
        self._lock = threading.RLock()
        self._poll = select.poll()
        self._poll.register(hatchling.replies, select.POLLIN)
        self._greeted = False
        self._closed = False
        self._cpu_last = 0.0
        self._cpu_granted = 0.0
        self._printed = ""

    # --- the calls ---------------------------------------------------------------------------

    def inspect(self) -> Inspection:
        """Run the static gates on the source, before any of it has run."""
        request = wire.Inspect(
            _nonce(), self._source, self._policy, self.limits.printed_bytes, self.limits.reply_bytes
        )
        return self._call("inspect", request, 1, self.limits.load_seconds)[0]  # type: ignore[no-any-return]

    def load(self) -> LoadReply:
        """Run the module and find its class; call `inspect` first."""
        seconds = self.limits.load_seconds
        return self._call("load", wire.Load(_nonce()), 1, seconds)[0]  # type: ignore[no-any-return]

    def reset(
        self, slots: Sequence[int], seeds: Sequence[int], *, fresh: bool = True
    ) -> list[RawReset | Raised | Bad]:
        """Make a fresh instance in each slot, seeded, and call its `reset`.

        With `fresh` off the instances that the slots hold are seeded and reset again.
        """
        request = wire.Reset(_nonce(), list(slots), list(seeds), fresh)
        return self._call("reset", request, len(slots), self.limits.reset_seconds)

    def step(self, slots: Sequence[int], actions: Sequence[str]) -> list[RawStep | Raised | Bad]:
        """Call `step` once in each slot."""
        request = wire.Step(_nonce(), list(slots), list(actions))
        return self._call("step", request, len(slots), self.limits.step_seconds, actions)

    def tool(
        self, slots: Sequence[int], calls: Sequence[tuple[str, bytes, int]]
    ) -> list[RawTool | Raised]:
        """Run one declared tool in each slot, then ask whether the user's turn is done.

        Args:
            slots: one instance for each call.
            calls: name, arguments as JSON, and the user turn (from 0) to ask about.
        """
        request = wire.Tool(_nonce(), list(slots), list(calls))
        return self._call("tool", request, len(slots), self.limits.step_seconds, calls)

    def criteria(self, slots: Sequence[int], turns: Sequence[int]) -> list[RawCriterion | Raised]:
        """Ask whether a user turn (from 0) is done now, in each slot."""
        request = wire.Criteria(_nonce(), list(slots), list(turns))
        return self._call("criterion", request, len(slots), self.limits.step_seconds)

    def solution(self, slots: Sequence[int]) -> list[RawSolution | Raised]:
        """Ask for the reference solution of each slot's present state."""
        request = wire.Solution(_nonce(), list(slots))
        return self._call("solution", request, len(slots), self.limits.reset_seconds)

    def close_instances(self, slots: Sequence[int]) -> list[Raised | None]:
        """Call the class's `close`, where it has one, and forget the instances."""
        request = wire.Close(_nonce(), list(slots))
        items: list[RawClosed | Raised] = self._call(
            "close", request, len(slots), self.limits.step_seconds
        )
        return [item if isinstance(item, Raised) else None for item in items]

    def kill(self) -> None:
        """End the child without calling it back; may be called twice."""
        with self._lock:
            if self._closed:
                return
            self._note_cpu()
            self._child.kill()
            self._nursery.forget(self._child)
            self._release()

    @property
    def pid(self) -> int:
        """The child's process, as this one's `/proc` knows it."""
        return self._child.pid

    @property
    def cpu_seconds(self) -> float:
        """Processor time that the child has used, as the kernel counts it."""
        with self._lock:
            self._note_cpu()
            return self._cpu_last

    def __enter__(self) -> RawChild:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the child."""
        self.kill()

    # --- the exchange ------------------------------------------------------------------------

    def _call(
        self, phase: str, request: Any, count: int, seconds: float, sent: Sequence[Any] = ()
    ) -> list[Any]:
        if count == 0:
            return []
        body = _encoded(request)
        with self._lock, self._workers:
            self._must_serve()
            exchange = Exchange(phase, request.nonce, count, self.limits.reply_bytes)
            try:
                self._greet()
                budget = Budget(self._child.pid, seconds, count, self.limits.wall_factor)
                self._cpu_granted = grant(self._child.pid, budget, self._cpu_granted)
                self._run(exchange, budget, wire.HEADER.pack(len(body)) + body)
            except (EnvFault, HostError) as fault:
                self._fail(fault, phase, exchange, sent)
            except BaseException:
                # An interrupt in mid-reply leaves the pipe in no state to go on from.
                self.fault = HostError(f"a {phase} was interrupted; open the environment again")
                self.kill()
                raise
            for item in exchange.items:
                self._printed = getattr(item, "printed_tail", "") or self._printed
            return exchange.items

    def _run(self, exchange: Exchange, budget: Budget, data: bytes) -> None:
        left = self._write(data)
        while not exchange.done:
            self._await(budget, writing=bool(left))
            if left:
                left = self._write(left)
            chunk = self._read()
            if chunk is None:
                continue
            try:
                moved = exchange.feed(chunk)
            except WireViolation as problem:
                raise violated(problem) from None
            if moved and not budget.progress():
                raise overdue(budget)

    def _await(self, budget: Budget, *, writing: bool) -> None:
        """Wait until the child has something to say, or its time is up."""
        if writing:
            self._poll.modify(self._child.replies, select.POLLIN)
            self._poll.register(self._child.requests, select.POLLOUT)
        try:
            while not self._poll.poll(budget.wait_ms()):
                if budget.spent():
                    raise overdue(budget)
        finally:
            if writing:
                self._poll.unregister(self._child.requests)

    def _write(self, data: bytes) -> bytes:
        try:
            return data[os.write(self._child.requests, data) :]
        except BlockingIOError:
            return data
        except OSError:
            raise self._ended() from None

    def _read(self) -> bytes | None:
        try:
            chunk = os.read(self._child.replies, _READ_BYTES)
        except BlockingIOError:
            return None
        if not chunk:
            raise self._ended()
        return chunk

    def _greet(self) -> None:
        """Read the four zero bytes of a child that is locked down, before it is given anything."""
        if self._greeted:
            return
        if not self._poll.poll(int(_HELLO_SECONDS * 1000)):
            raise HostError(f"a fresh child did not start within {_HELLO_SECONDS:.0f} s")
        if self._read() != HELLO:
            raise HostError("a fresh child did not greet; the installation may be damaged")
        self._greeted = True

    def _ended(self) -> EnvFault | HostError:
        self._note_cpu()
        return ended(self._nursery.ending(self._child), greeted=self._greeted)

    # --- the end -----------------------------------------------------------------------------

    def _fail(
        self, fault: EnvFault | HostError, phase: str, exchange: Exchange, sent: Sequence[Any]
    ) -> None:
        if isinstance(fault, EnvFault):
            place = len(exchange.items)
            action = sent[place] if place < len(sent) else None
            seen = fault.evidence
            fault.evidence = Evidence(
                phase=phase,
                exit_status=seen.exit_status,
                signal=seen.signal,
                last_action=str(action)[:_ACTION_SHOWN] if action is not None else None,
                printed=self._printed,
            )
        self.fault = fault
        self.kill()
        raise fault

    def _must_serve(self) -> None:
        if self.fault is not None:
            raise self.fault.with_traceback(None)
        if self._closed:
            raise RuntimeError("this child was killed; open the environment again")

    def _note_cpu(self) -> None:
        if not self._closed:
            with contextlib.suppress(OSError):
                self._cpu_last = cpu_clock(self._child.pid)

    def _release(self) -> None:
        self._closed = True
        self._child.close()


def _nonce() -> int:
    return secrets.randbits(63)


def _encoded(request: Any) -> bytes:
    try:
        return _encode(request)
    except UnicodeEncodeError:
        # A lone surrogate in an agent's text is no reason to stop: it is shown as "?".
        request.actions = [action.encode("utf-8", "replace").decode() for action in request.actions]
        return _encode(request)
