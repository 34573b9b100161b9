"""Where the microseconds of a group's step go, layer by layer, each by itself in this process.

Run it with ``python benchmarks/layers.py [--json FILE] [--quick]``. The class is that of
`benchmarks/gymnasium_side.py`. A layer is measured warm, so their sum is less than a step of
`benchmarks/sandbox.py`: there each process finds the caches as the other one left them.

The last rows are a byte through two pipes and back: to a process on the same processor, and to one
on another, which has to be woken by an interrupt.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from typing import Any

import msgspec
from _command_line import tell
from _timing import timed
from gymnasium_side import SOURCE

from spade_envs.vector_infos import Notes
from spade_runtime.messages import game_actions
from spade_runtime.sandbox import orders, source, wire
from spade_runtime.sandbox.book import Book, Moves
from spade_runtime.sandbox.child import Child
from spade_runtime.sandbox.exchange import Exchange
from spade_runtime.sandbox.facilities import machine
from spade_runtime.spec import EnvSpec, Limits

GROUPS = (1, 16, 64)
MESSAGE = "onwards"
LIMITS = Limits()
SPEC = EnvSpec(
    id="spade/Walk-v0",
    sha256="0" * 64,
    kind="game",
    title="Walk",
    skill="spatial_reasoning",
    max_turns=100,
)


def opened(count: int, sent: list[bytes]) -> Child:
    """The child's side in this process, with the class loaded and `count` instances reset."""
    child = Child(sent.append)
    slots = list(range(count))
    limits = LIMITS.printed_bytes, LIMITS.reply_bytes
    reading = source.read(wire.Inspect(0, SOURCE, True, *limits))
    requests: list[wire.Request] = [
        orders.load(LIMITS, SOURCE, reading, policy=True).request,
        wire.Reset(0, slots, slots),
    ]
    for request in requests:
        child.answer(request)
    return child


def layers(count: int, times: int) -> dict[str, dict[str, float]]:
    """What each layer takes for one step of a group, in the order in which they come."""
    sent: list[bytes] = []
    child = opened(count, sent)
    slots, messages = list(range(count)), [MESSAGE] * count
    order = orders.step(LIMITS, slots, messages)
    data = order.framed()
    instances = [child._slots[slot].instance for slot in slots]

    def answer() -> None:
        sent.clear()
        child.answer(order.request)

    def feed() -> Exchange:
        exchange = Exchange("step", order.request.nonce, count, LIMITS.reply_bytes)
        exchange.feed(sent[0])
        return exchange

    found = {
        "parent: messages to actions": timed(lambda: game_actions(messages, "contract"), times),
        "parent: request": timed(lambda: orders.step(LIMITS, slots, messages).framed(), times),
        "child: read the request": timed(lambda: wire.request_decoder.decode(data[4:]), times),
        "child: play and encode": timed(answer, times),
        "... of it the class's own steps": timed(
            lambda: [instance.step(MESSAGE) for instance in instances], times
        ),
    }
    answer()
    claims = feed().claims
    book = Book(SPEC, LIMITS, count)
    for slot in slots:
        book.begun(slot, wire.RawReset("go", b"{}"), sys.maxsize)
    moves = book.moves(slots, claims, messages)
    assert isinstance(moves, Moves)
    notes = Notes(count)
    return found | {
        "parent: decode and check the frame": timed(feed, times),
        "parent: check values, count turns": timed(
            lambda: book.moves(book.all, claims, messages), times
        ),
        "parent: the vector's infos": timed(
            lambda: notes.joined([(slice(0, count), moves)], {}), times
        ),
    }


def waking(times: int) -> dict[str, dict[str, float]]:
    """A byte to another process and back, while each computes for 20 us in between."""
    processors = sorted(os.sched_getaffinity(0))
    found = {"on the same processor": _echo(processors[0], processors[0], times)}
    if len(processors) > 1:
        found["on another processor"] = _echo(processors[0], processors[1], times)
    os.sched_setaffinity(0, processors)
    return found


def _echo(here: int, there: int, times: int) -> dict[str, float]:
    request_read, request_write = os.pipe()
    reply_read, reply_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.sched_setaffinity(0, {there})
        os.close(request_write)
        while os.read(request_read, 1):
            _compute()
            os.write(reply_write, b"x")
        os._exit(0)
    os.sched_setaffinity(0, {here})
    seen = []
    for _ in range(times):
        _compute()
        start = time.perf_counter()
        os.write(request_write, b"x")
        os.read(reply_read, 1)
        seen.append(time.perf_counter() - start - _SECONDS)
    for descriptor in (request_read, request_write, reply_read, reply_write):
        os.close(descriptor)
    os.waitpid(pid, 0)
    return {"median": statistics.median(seen), "best": min(seen)}


_SECONDS = 20e-6


def _compute() -> None:
    end = time.perf_counter() + _SECONDS
    while time.perf_counter() < end:
        pass


def measure(quick: bool) -> dict[str, Any]:
    times = 300 if quick else 5000
    return {
        "machine": machine(),
        "load": os.getloadavg(),
        "msgspec": msgspec.__version__,
        "layers": {str(count): layers(count, times) for count in GROUPS},
        "waking": waking(times),
    }


def table(report: dict[str, Any]) -> str:
    heads = "".join(f"{f'{count} (us)':>12}" for count in report["layers"])
    lines = [f"best of many, load {report['load'][0]:.1f}", f"{'':<40}{heads}"]
    for name in report["layers"]["1"]:
        cells = [group[name]["best"] * 1e6 for group in report["layers"].values()]
        lines.append(f"{name:<40}" + "".join(f"{cell:12.1f}" for cell in cells))
    for name, found in report["waking"].items():
        both = f"{found['best'] * 1e6:12.1f} {found['median'] * 1e6:12.1f} median"
        lines.append(f"{f'a byte and back, {name}':<40}{both}")
    return "\n".join(lines)


if __name__ == "__main__":
    tell(__doc__, measure, table)
