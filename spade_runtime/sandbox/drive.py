"""Many requests at once: from one thread, or from asyncio."""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import Sequence
from typing import Any

from spade_runtime.errors import EnvFault
from spade_runtime.sandbox.channel import WORKER_SECONDS, RawChild
from spade_runtime.sandbox.orders import Order
from spade_runtime.sandbox.pending import Pending

_BUSY_SECONDS = 0.002
_SWEEP_MS = int(WORKER_SECONDS * 1000) + 1


def drive(work: Sequence[tuple[RawChild, Order]]) -> list[list[Any] | EnvFault]:
    """Send requests to many children and gather the replies, all from the calling thread.

    As many compute at once as the pool has workers; the others wait their turn.

    Returns:
        For each request its items, or the fault that lost the child: no class's fault touches
        another's reply.

    Raises:
        HostError: the machine is at fault. Requests that still ran are abandoned.
    """
    results: list[list[Any] | EnvFault] = [[] for _ in work]
    waiting = [place for place, (_, order) in enumerate(work) if order.count][::-1]
    running: dict[int, tuple[int, Pending]] = {}
    poll = select.poll()
    swept = time.monotonic()
    try:
        while waiting or running:
            _fill(work, waiting, running, results, poll)
            ready = [one for one in _events(running, poll) if running[one][1].pump()]
            if time.monotonic() - swept > WORKER_SECONDS:
                # Requests that take this long no longer keep others from beginning.
                for place, _ in running.values():
                    work[place][0].yield_worker()
                swept = time.monotonic()
                ready += [
                    one
                    for one, (_, pending) in running.items()
                    if one not in ready and pending.expire()
                ]
            for descriptor in ready:
                place, pending = running.pop(descriptor)
                poll.unregister(descriptor)
                results[place] = _finished(*work[place], pending)
    except BaseException:
        for place, _ in running.values():
            work[place][0].abandon()
        raise
    return results


def _fill(
    work: Sequence[tuple[RawChild, Order]],
    waiting: list[int],
    running: dict[int, tuple[int, Pending]],
    results: list[list[Any] | EnvFault],
    poll: Any,
) -> None:
    """Start what fits; with nothing running, wait for a worker of other threads."""
    while waiting:
        child, order = work[waiting[-1]]
        try:
            pending = child.start(order, blocking=not running)
        except BlockingIOError:
            return
        except EnvFault as fault:
            results[waiting.pop()] = fault
            continue
        place = waiting.pop()
        pending.send()
        while pending.writing and not pending.settled:
            # A request larger than the pipe: rare, and soon taken.
            _write_out(pending)
        if pending.settled:
            results[place] = _finished(child, order, pending)
            continue
        running[pending.replies] = (place, pending)
        poll.register(pending.replies, select.POLLIN)


def _write_out(pending: Pending) -> None:
    poll = select.poll()
    poll.register(pending.requests, select.POLLOUT)
    poll.register(pending.replies, select.POLLIN)
    if poll.poll(pending.wait_ms()):
        pending.pump()
    else:
        pending.expire()


def _events(running: dict[int, tuple[int, Pending]], poll: Any) -> list[int]:
    """Descriptors that have something to read, after a wait of at most a sweep."""
    return [descriptor for descriptor, _ in poll.poll(_SWEEP_MS)] if running else []


def _finished(child: RawChild, order: Order, pending: Pending) -> list[Any] | EnvFault:
    try:
        return child.finish(order, pending)
    except EnvFault as fault:
        return fault


async def run_async(child: RawChild, order: Order) -> list[Any]:
    """`RawChild.run` for asyncio: the event loop goes on while the child computes.

    Raises:
        EnvFault: the child is lost by its own fault.
        HostError: the machine is at fault.
    """
    if order.count == 0:
        return []
    while True:
        try:
            pending = child.start(order, blocking=False)
            break
        except BlockingIOError:
            await asyncio.sleep(_BUSY_SECONDS)
    loop = asyncio.get_running_loop()
    try:
        pending.send()
        while not pending.settled:
            await _event(loop, child, pending)
    except BaseException:
        child.abandon()
        raise
    return child.finish(order, pending)


async def _event(loop: asyncio.AbstractEventLoop, child: RawChild, pending: Pending) -> None:
    """Wait until a pipe is ready or the time is up, and take what there is."""
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(pending.replies, wake)
    if pending.writing:
        loop.add_writer(pending.requests, wake)
    try:
        await asyncio.wait_for(ready, min(pending.wait_ms() / 1000, WORKER_SECONDS))
        pending.pump()
    except TimeoutError:
        child.yield_worker()
        pending.expire()
    finally:
        loop.remove_reader(pending.replies)
        loop.remove_writer(pending.requests)
