"""On which processor a child computes: on the parent's own while it is quick, on any once it isn't.

Waking a process on another, idle processor costs an interrupt there and one back; on a virtual
machine that is some 50 us of waiting, and as much processor time, for a step that takes one. A
parent that waits leaves its own processor free, and a child that is bound to it begins at once.
Where there is more to do than that saves, the children are let go and compute side by side.
"""

from __future__ import annotations

import contextlib
import ctypes
import os

NEAR_SECONDS = 100e-6
"""Several children stay near where they need no more than this together."""
ALONE_SECONDS = 500e-6
"""One child that is waited for loses nothing by being near; longer, and others could move in."""
CROWDED_SECONDS = 1e-3
"""A child that was near and took longer had to wait for others. Found out afterwards: a timer that
comes before the kernel's own tick costs more than the step."""
_LOOK_ROUNDS = 16
"""A child that is bound is looked after this often: the calling thread may have been moved."""
_APART_FIRST, _APART_MOST = 2, 64
"""So many requests stay away from a processor that was found busy, twice as many each time."""

_libc = ctypes.CDLL(None)


class Placement:
    """Where one child computes. Used by one thread at a time, while the child waits for a request.

    Args:
        pid: the child.
    """

    __slots__ = ("_apart", "_bound", "_everywhere", "_next_apart", "_pid", "_steady")

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._bound = -1
        self._everywhere: set[int] = set()
        self._apart = 0
        self._next_apart = _APART_FIRST
        self._steady = 0

    def near(self) -> bool:
        """Bind the child to the processor of the calling thread; says whether it is bound now."""
        if self._steady:
            self._steady -= 1
            return True
        if self._apart:
            self._apart -= 1
            self.free()
            return False
        if self._bound >= 0:
            # Nobody let it go since: the last time was quick enough.
            self._next_apart = _APART_FIRST
        here: int = _libc.sched_getcpu()
        if here != self._bound:
            try:
                if not self._everywhere:
                    self._everywhere = os.sched_getaffinity(self._pid)
                os.sched_setaffinity(self._pid, {here})
            except OSError:
                # Not this process's to bind, or gone, which the pipe tells.
                self._apart = 1 << 62
                return False
            self._bound = here
        self._steady = _LOOK_ROUNDS
        return True

    def free(self) -> None:
        """Let the child compute where the kernel puts it."""
        if self._bound >= 0:
            self._bound, self._steady = -1, 0
            with contextlib.suppress(OSError):
                os.sched_setaffinity(self._pid, self._everywhere)

    def crowded(self) -> None:
        """Let the child go that was too slow where it is, and keep it away for a while."""
        self._apart = self._next_apart
        self._next_apart = min(2 * self._next_apart, _APART_MOST)
        self.free()
