"""How many requests compute at once."""

from __future__ import annotations

import queue

WORKER_SECONDS = 0.05
"""A request that takes longer gives its worker's place back, so that hogs block nobody else."""


class Workers:
    """How many requests may compute at once; a counter that waits its turn.

    Args:
        count: places.
    """

    def __init__(self, count: int) -> None:
        # A queue of tokens is a tenth of the cost of threading.Semaphore.
        self._tokens: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(count):
            self._tokens.put(None)

    def take(self, *, blocking: bool) -> bool:
        """Take a place; False where none is free and it may not wait."""
        try:
            self._tokens.get(blocking)
        except queue.Empty:
            return False
        return True

    def give_back(self) -> None:
        """Give a place back."""
        self._tokens.put(None)
