"""The loop of a child: takes a request, runs the class, sends its claims.

Everything here shares a process with code that may be hostile and may replace any of it; that is
why nothing here is trusted, and why this file only has to be correct for honest classes.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import msgspec

from spade_runtime.sandbox import claims, columns, source
from spade_runtime.sandbox.capture import Capture
from spade_runtime.sandbox.columns import FLUSH_SECONDS, Slot
from spade_runtime.sandbox.program import run as run_program
from spade_runtime.sandbox.syscalls import REPLY_FD, REQUEST_FD
from spade_runtime.sandbox.wire import (
    CHUNK_BYTES,
    FRAME_MARGIN,
    HEADER,
    HELLO,
    Bad,
    Close,
    Criteria,
    Load,
    LoadReply,
    Raised,
    RawClosed,
    RawCriterion,
    RawReset,
    RawStep,
    RawTool,
    Request,
    Reset,
    Run,
    Solution,
    Step,
    Tool,
    request_decoder,
)

READ_BYTES = 65536
OUT_OF_MEMORY_STATUS = 82
_SMALL = 4096
"""More than anything else weighs."""

_encode = msgspec.msgpack.Encoder().encode


def _write(data: bytes) -> None:
    done = os.write(REPLY_FD, data)
    while done < len(data):
        data = data[done:]
        done = os.write(REPLY_FD, data)


class Child:
    """One class, its instances, and the two pipes.

    Args:
        write: sends bytes to the parent.
    """

    def __init__(self, write: Callable[[bytes], None] = _write) -> None:
        self._write = write
        self._buffer = b""
        self._capture = Capture(0)
        self._reply_bytes = 0
        self._program: source.Program | None = None
        self._slots: dict[int, Slot] = {}

    def serve(self) -> None:
        """Answer requests until the parent closes its end."""
        self._write(HELLO)
        while True:
            request = self._receive()
            if request is None:
                return
            self.answer(request)

    # --- the pipes ---------------------------------------------------------------------------

    def _receive(self) -> Request | None:
        data = self._buffer
        while len(data) < HEADER.size or len(data) < HEADER.size + HEADER.unpack_from(data)[0]:
            more = os.read(REQUEST_FD, READ_BYTES)
            if not more:
                return None
            data += more
        end = HEADER.size + HEADER.unpack_from(data)[0]
        self._buffer = data[end:]
        return request_decoder.decode(memoryview(data)[HEADER.size : end])

    def _send(self, nonce: int, first: int, last: bool, items: Sequence[Any]) -> None:
        body = _encode((nonce, first, last, items))
        if len(body) > self._reply_bytes and self._reply_bytes:
            items = [self._bounded(item) for item in items]
            body = _encode((nonce, first, last, items))
        self._write(HEADER.pack(len(body)) + body)

    def _bounded(self, item: Any) -> msgspec.Raw:
        size = len(_encode(item))
        if size <= self._reply_bytes + FRAME_MARGIN // 2:
            return msgspec.Raw(_encode(item))
        return msgspec.Raw(_encode(self._too_large("reply", size)))

    def _too_large(self, phase: str, size: int) -> Raised:
        message = f"the reply is {size} bytes long, and {self._reply_bytes} are allowed"
        return Raised(phase, "ReplyTooLarge", message, None, "SPD804")

    # --- requests ----------------------------------------------------------------------------

    def answer(self, request: Request) -> None:
        """Do what a request asks for, and send what came of it."""
        if isinstance(request, Step):
            self._steps(request)
        elif isinstance(request, Reset):
            call = self._reset if request.fresh else self._reset_again
            self._batch(request.nonce, request.slots, request.seeds, call, "reset")
        elif isinstance(request, Tool):
            self._batch(request.nonce, request.slots, request.calls, self._tool, "tool")
        elif isinstance(request, Criteria):
            turns = request.turns
            self._batch(request.nonce, request.slots, turns, self._criterion, "criterion")
        elif isinstance(request, Solution):
            slots = request.slots
            self._batch(request.nonce, slots, slots, self._solution, "solution")
        elif isinstance(request, Close):
            self._batch(request.nonce, request.slots, request.slots, self._close, "close")
        elif isinstance(request, Load):
            self._send(request.nonce, 0, True, [self._load(request)])
        elif isinstance(request, Run):
            gc.enable()
            self._send(request.nonce, 0, True, [run_program(request)])
        else:
            self._reply_bytes = request.reply_bytes
            self._send(request.nonce, 0, True, [source.read(request)])

    def _steps(self, request: Step) -> None:
        if len(request.slots) < columns.GROUP_MIN:
            self._batch(request.nonce, request.slots, request.actions, self._step, "step")
            return
        entropy = self._loaded().entropy
        place, odd = columns.play(request, self._slots, entropy, self._capture, self._write)
        if odd is not None:
            slots, actions = request.slots[place:], request.actions[place:]
            self._batch(request.nonce, slots, actions, self._step, "step", place, odd)

    def _batch(
        self,
        nonce: int,
        slots: Sequence[int],
        values: Sequence[Any],
        call: Callable[[int, Any], Any],
        phase: str,
        first: int = 0,
        begun: Any = None,
    ) -> None:
        """Call for each slot and send the claims.

        Args:
            nonce: of the request.
            slots: which instances.
            values: what each call is given.
            call: what to call.
            phase: its name.
            first: position of the first item in the request.
            begun: the first item, where that call was made already.
        """
        items: list[Any] = []
        weight, capture, limit = 0, self._capture, self._reply_bytes
        violations = self._loaded().entropy.violations
        due = perf_counter() + FLUSH_SECONDS
        for slot, value in zip(slots, values, strict=True):
            if (weight > CHUNK_BYTES or perf_counter() > due) and items:
                self._send(nonce, first, False, items)
                first, weight, items = first + len(items), 0, []
                due = perf_counter() + FLUSH_SECONDS
            item, begun = begun, None
            if item is None:
                try:
                    item = call(slot, value)
                except BaseException as error:
                    item = claims.raised(phase, error)
            if violations:
                # The code may have caught what the guard raised; it stays refused.
                item = claims.raised(phase, violations[0])
                violations.clear()
            if capture.used:
                item = self._with_printed(item, phase)
            size = _weight(item)
            if size > limit:
                # Found before it is encoded: that would need the same memory again.
                item, size = self._too_large(phase, size), _SMALL
            items.append(item)
            weight += size
        self._send(nonce, first, True, items)

    def _with_printed(self, item: Any, phase: str) -> Any:
        over, limit = self._capture.over, self._capture.limit
        used, tail = self._capture.take()
        if over and not (isinstance(item, Raised) and item.code == "SPD802"):
            message = f"the call printed over {limit} bytes"
            return Raised(phase, "PrintedTooMuch", message, None, "SPD804", used, tail)
        if not isinstance(item, Bad):
            item.printed_bytes, item.printed_tail = used, tail
        return item

    # --- calls of the class ------------------------------------------------------------------

    def _load(self, request: Load) -> LoadReply:
        self._capture.limit = request.printed_bytes
        self._reply_bytes = request.reply_bytes
        self._program = program = source.Program(request)
        gc.enable()  # off since the zygote: reading a source makes no cycles
        try:
            program.load()
            schemas, problems = program.tools()
            reply = LoadReply(None, schemas, problems)
        except BaseException as error:
            reply = LoadReply(claims.raised("load", error))
        if program.entropy.violations:
            reply = LoadReply(claims.raised("load", program.entropy.violations[0]))
            program.entropy.violations.clear()
        if self._capture.used:
            item = self._with_printed(reply, "load")
            reply = LoadReply(item) if isinstance(item, Raised) else item
        return reply

    def _loaded(self) -> source.Program:
        if self._program is None:
            raise RuntimeError("no module was sent yet")
        return self._program

    def _reset(self, slot: int, seed: int) -> Any:
        program = self._loaded()
        self._slots.pop(slot, None)
        state = program.seeded(seed)
        try:
            instance = program.construct()
        except BaseException as error:
            return claims.raised("construct", error)
        return self._started(slot, instance, state, seed)

    def _reset_again(self, slot: int, seed: int) -> Any:
        instance = self._slots[slot].instance
        return self._started(slot, instance, self._loaded().seeded(seed), seed)

    def _started(self, slot: int, instance: Any, state: Any, seed: int) -> Any:
        program = self._loaded()
        result = instance.reset(seed)
        self._slots[slot] = Slot(instance, state)
        if type(result) is not tuple or len(result) != 2:
            return claims.bad(result)
        reply = RawReset(claims.text(result[0]), claims.mapping(result[1]))
        if program.is_tool_use:
            reply.turns, reply.turns_bad = source.instructions(instance)
        return reply

    def _step(self, slot: int, action: str) -> Any:
        here = self._slots[slot]
        self._loaded().activate(here.state)
        return columns.claimed(here.instance.step(action))

    def _tool(self, slot: int, call: tuple[str, bytes, int]) -> Any:
        here = self._slots[slot]
        self._loaded().activate(here.state)
        name, arguments, turn = call
        result = source.call_tool(here.instance, name, msgspec.json.decode(arguments))
        done: Any
        try:
            done = claims.flag(source.criterion_holds(here.instance, turn))
        except BaseException as error:
            done = claims.raised("criterion", error)
        return RawTool(claims.text(result), done)

    def _criterion(self, slot: int, turn: int) -> Any:
        here = self._slots[slot]
        self._loaded().activate(here.state)
        return RawCriterion(claims.flag(source.criterion_holds(here.instance, turn)))

    def _solution(self, slot: int, _: int) -> Any:
        here = self._slots[slot]
        program = self._loaded()
        program.activate(here.state)
        return source.solution(here.instance, tool_use=program.is_tool_use)

    def _close(self, slot: int, _: int) -> Any:
        here = self._slots.pop(slot, None)
        if here is not None:
            self._loaded().activate(here.state)
            close = getattr(here.instance, "close", None)
            if callable(close):
                close()
        return RawClosed()


def _weight(item: Any) -> int:
    """An item's encoded size in bytes, without what it printed and its envelope."""
    if isinstance(item, RawStep | RawReset):
        return _size(item.observation) + _size(item.info)
    if isinstance(item, RawTool):
        return _size(item.result)
    return _SMALL


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode())
    return len(value) if isinstance(value, bytes) else _SMALL


def main() -> None:
    """Serve until the parent goes, then leave without running anybody's exit hooks."""
    child = Child()
    capture = child._capture
    sys.stdin = io.StringIO()
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = capture  # type: ignore[misc,assignment]
    status = 1
    try:
        child.serve()
        status = 0
    except MemoryError:
        status = OUT_OF_MEMORY_STATUS
    except BaseException:
        status = 1
    finally:
        os._exit(status)
