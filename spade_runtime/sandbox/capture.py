"""Takes what a class prints: counted, bounded, and never written anywhere from the child."""

from __future__ import annotations

import io
from collections.abc import Iterable

from spade_runtime.sandbox.wire import PRINTED_TAIL


class PrintedTooMuch(BaseException):
    """A call printed more than its limit; no `except Exception` may swallow it."""


class Capture(io.TextIOBase):
    """Stands in for `sys.stdout` and `sys.stderr`.

    Attributes:
        used: bytes printed since the last `take`.
        limit: bytes that one call may print.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.used = 0
        self._tail = ""

    def write(self, text: str) -> int:
        """Count and keep the end of a text.

        Raises:
            PrintedTooMuch: the call is over its limit.
        """
        self.used += len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        if self.used > self.limit:
            raise PrintedTooMuch
        self._tail = (self._tail + text[-PRINTED_TAIL:])[-PRINTED_TAIL:]
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:  # type: ignore[override]
        """Write each of the texts."""
        for line in lines:
            self.write(line)

    def writable(self) -> bool:
        """It is."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """As of any terminal."""
        return "utf-8"

    @property
    def over(self) -> bool:
        """Whether the call has printed more than its limit, also where it swallowed the error."""
        return self.used > self.limit

    def take(self) -> tuple[int, str]:
        """The bytes printed since the last call of this, and the end of them."""
        if not self.used:
            return 0, ""
        taken = self.used, self._tail.encode("utf-8", "replace").decode()
        self.used, self._tail = 0, ""
        return taken
