"""One request and its reply, as the parent sees them: bytes in, checked items out.

Nothing here waits or reads; the channel feeds it. Every violation raises `WireViolation`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from spade_runtime.sandbox.wire import (
    CHUNK_BYTES,
    COLUMNS_MARK,
    FRAME_MARGIN,
    HEADER,
    SLOTS_MAX,
    Bad,
    Columns,
    Frame,
    LoadReply,
    ProgramReply,
    Raised,
    RawClosed,
    RawCriterion,
    RawReset,
    RawSolution,
    RawStep,
    RawTool,
    Reading,
)

_decoder = msgspec.msgpack.Decoder

DECODERS: dict[str, msgspec.msgpack.Decoder[Any]] = {
    "program": _decoder(Frame[ProgramReply]),
    "inspect": _decoder(Frame[Reading]),
    "load": _decoder(Frame[LoadReply]),
    "reset": _decoder(Frame[RawReset | Raised | Bad]),
    "step": _decoder(Frame[RawStep | Raised | Bad]),
    "tool": _decoder(Frame[RawTool | Raised]),
    "criterion": _decoder(Frame[RawCriterion | Raised]),
    "solution": _decoder(Frame[RawSolution | Raised]),
    "close": _decoder(Frame[RawClosed | Raised]),
}
"""One decoder for each phase: a reply of another phase's type is a violation."""
_decode_columns = _decoder(Columns).decode
_MARK = bytes([COLUMNS_MARK])


class WireViolation(Exception):
    """A frame that is no reply to the request.

    Attributes:
        too_large: the frame is too large rather than malformed.
    """

    def __init__(self, message: str, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large


class Exchange:
    """Collects the items of one reply.

    Args:
        phase: the call, a key of `DECODERS`.
        nonce: the request's nonce.
        count: items to expect, one for each slot.
        reply_bytes: what one instance's reply may weigh.
        followed: the reply to another request comes behind this one.

    Attributes:
        received: items so far.
        done: all of them are here.
        rest: bytes that came behind a reply that is followed.
    """

    __slots__ = (
        "_buffer",
        "_columns",
        "_count",
        "_decode",
        "_followed",
        "_frame_max",
        "_items",
        "_left",
        "_nonce",
        "_steps",
        "done",
        "received",
        "rest",
    )

    def __init__(
        self, phase: str, nonce: int, count: int, reply_bytes: int, *, followed: bool = False
    ) -> None:
        if not 0 < count <= SLOTS_MAX:
            raise ValueError(f"a request is for 1 to {SLOTS_MAX} slots, not for {count}")
        self._decode = DECODERS[phase].decode
        self._nonce = nonce
        self._count = count
        self._frame_max = CHUNK_BYTES + reply_bytes + FRAME_MARGIN
        self._left = count * (reply_bytes + FRAME_MARGIN)
        self._buffer = b""
        self._steps = phase == "step"
        self._columns: Columns | None = None
        self._items: list[Any] = []
        self._followed = followed
        self.received = 0
        self.done = False
        self.rest = b""

    @property
    def items(self) -> list[Any]:
        """What came so far, one for each slot."""
        return self._items if self._columns is None else self._columns.rows()

    @property
    def claims(self) -> list[Any] | Columns:
        """The same, left as columns where the whole reply came so."""
        return self._items if self._columns is None else self._columns

    def feed(self, data: bytes) -> bool:
        """Take bytes as they came.

        Returns:
            Whether an item came with them.

        Raises:
            WireViolation: the bytes are no part of a reply to this request.
        """
        buffer = self._buffer + data if self._buffer else data
        before = self.received
        while len(buffer) >= 4 and not (self.done and self._followed):
            (size,) = HEADER.unpack_from(buffer)
            # Refused on the header alone, before a byte of the body is kept.
            if size > self._frame_max or size > self._left:
                raise WireViolation(f"a frame of {size} bytes was announced", too_large=True)
            if self.done:
                raise WireViolation("bytes after the end of the reply")
            if len(buffer) < 4 + size:
                break
            self._left -= size
            self._take(buffer[4 : 4 + size])
            buffer = buffer[4 + size :]
        if self.done and self._followed:
            self.rest, buffer = buffer, b""
        if self.done and buffer:
            raise WireViolation("bytes after the end of the reply")
        self._buffer = buffer
        return self.received > before

    def _take(self, body: bytes) -> None:
        by_column = self._steps and body[:1] == _MARK
        try:
            frame: Any = _decode_columns(body) if by_column else self._decode(body)
        except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
            raise WireViolation(f"a frame does not decode: {problem}") from problem
        if frame.nonce != self._nonce:
            raise WireViolation("a frame carries the nonce of another request")
        count = len(frame.observations if by_column else frame.items)
        if frame.first != self.received or not count:
            raise WireViolation("a frame is out of order")
        if by_column and not frame.even():
            raise WireViolation("the columns of a frame are not of one length")
        self.received += count
        if self.received > self._count or frame.last != (self.received == self._count):
            raise WireViolation(f"the reply has not the {self._count} items that were asked for")
        if by_column and frame.last and not frame.first:
            self._columns = frame
        else:
            self._items += frame.rows() if by_column else frame.items
        self.done = frame.last
