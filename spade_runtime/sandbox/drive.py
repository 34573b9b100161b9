"""Many requests at once: from one thread, or from asyncio."""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import Sequence
from typing import Any

from spade_runtime.errors import EnvFault
from spade_runtime.sandbox.budget import look_seconds
from spade_runtime.sandbox.channel import Both, RawChild, Reply
from spade_runtime.sandbox.orders import Order
from spade_runtime.sandbox.pending import Pending
from spade_runtime.sandbox.placement import NEAR_SECONDS, Hold
from spade_runtime.sandbox.wire import Columns
from spade_runtime.sandbox.workers import WORKER_SECONDS

_BUSY_SECONDS = 0.002


Work = Sequence[tuple[RawChild, Order]]


def drive(work: Work) -> list[list[Any] | EnvFault]:
    """Send requests to many children and gather the replies, all from the calling thread.

    As many compute at once as the pool has workers; the others wait their turn.

    Returns:
        For each request its items, or the fault that lost the child: no class's fault touches
        another's reply.

    Raises:
        HostError: the machine is at fault. Requests that still ran are abandoned.
    """
    found: list[Any] = exchanged(work)
    return [one.rows() if isinstance(one, Columns) else one for one in found]


def exchanged(work: Work) -> list[Reply | Both]:
    """As `drive`; steps of games are left as columns where they came so.

    Two results for an order that has another one behind it.
    """
    results: list[Reply | Both] = [[] for _ in work]
    waiting = [place for place, (_, order) in enumerate(work) if order.count][::-1]
    running: dict[int, tuple[int, Pending]] = {}
    poll = select.poll()
    swept, pause = time.monotonic(), WORKER_SECONDS
    near = sum(child.expected(order) for child, order in work) < NEAR_SECONDS
    hold = Hold() if near else None
    try:
        while waiting or running:
            _fill(work, waiting, running, results, poll, near=near)
            events = poll.poll(int(pause * 1000) + 1) if running else ()
            ready = [one for one, _ in events if running[one][1].pump()]
            if time.monotonic() - swept > pause:
                # Requests that take this long no longer keep others from beginning.
                near = False
                for place, _ in running.values():
                    work[place][0].yield_worker()
                    work[place][0].spread()
                swept, pause = time.monotonic(), look_seconds()
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
    finally:
        if hold is not None:
            hold.release()
    return results


def _fill(
    work: Work,
    waiting: list[int],
    running: dict[int, tuple[int, Pending]],
    results: list[Reply | Both],
    poll: Any,
    *,
    near: bool,
) -> None:
    """Start what fits; with nothing running, wait for a worker of other threads."""
    while waiting:
        child, order = work[waiting[-1]]
        try:
            pending = child.start(order, blocking=not running, near=near)
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


def _finished(child: RawChild, order: Order, pending: Pending) -> Reply | Both:
    if order.then is not None:
        return child.finish_both(order, pending)
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
    found = child.finish(order, pending)
    return found.rows() if isinstance(found, Columns) else found


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
