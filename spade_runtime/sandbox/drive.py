"""Many requests at once: from one thread, or from asyncio."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Sequence
from typing import Any

from spade_runtime.errors import EnvFault
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.orders import Order
from spade_runtime.sandbox.pending import Pending

_BUSY_SECONDS = 0.002


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
    try:
        while waiting or running:
            _fill(work, waiting, running, results, poll)
            for descriptor in _ready(running, poll):
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


def _ready(running: dict[int, tuple[int, Pending]], poll: Any) -> list[int]:
    """Descriptors whose request is settled now."""
    if not running:
        return []
    wait = min(pending.wait_ms() for _, pending in running.values())
    events = poll.poll(wait)
    if events:
        return [descriptor for descriptor, _ in events if running[descriptor][1].pump()]
    return [descriptor for descriptor, (_, pending) in running.items() if pending.expire()]


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
            await _event(loop, pending)
    except BaseException:
        child.abandon()
        raise
    return child.finish(order, pending)


async def _event(loop: asyncio.AbstractEventLoop, pending: Pending) -> None:
    """Wait until a pipe is ready or the time is up, and take what there is."""
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(pending.replies, wake)
    if pending.writing:
        loop.add_writer(pending.requests, wake)
    try:
        await asyncio.wait_for(ready, pending.wait_ms() / 1000)
        pending.pump()
    except TimeoutError:
        pending.expire()
    finally:
        loop.remove_reader(pending.replies)
        loop.remove_writer(pending.requests)
