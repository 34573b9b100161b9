"""How many requests compute at once."""

from __future__ import annotations

import queue

WORKER_SECONDS = 0.05
"""A request that takes longer gives its worker's place back, so that hogs block nobody else."""
PATIENCE_SECONDS = 2.0
"""A place that none gives back for so long is held by one that can't: who waits goes on without."""


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
        """Take a place; False where none is free in time, which is at once if it may not wait.

        Who may wait begins then without a place. They keep processors from being fought over,
        and are no lock: their holder may be the very thread that waits, an event loop's perhaps.
        """
        try:
            self._tokens.get(blocking, PATIENCE_SECONDS if blocking else None)
        except queue.Empty:
            return False
        return True

    def give_back(self) -> None:
        """Give a place back."""
        self._tokens.put(None)
