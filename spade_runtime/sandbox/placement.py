"""On which processor a child computes: on the parent's own while it is quick, on any once it isn't.

Waking a process on another, idle processor costs an interrupt there and one back; on a virtual
machine that is some 50 us of waiting, and as much processor time, for a step that takes one. A
parent that waits leaves its own processor free, and a child that is bound to it begins at once.
The calling thread is held there while it waits: the kernel would wake it on another processor that
is idle, which is an interrupt again, and the child would have to follow.
Where there is more to do than that saves, the children are let go and compute side by side.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys

NEAR_SECONDS = 100e-6
"""Several children stay near where they need no more than this together."""
ALONE_SECONDS = 500e-6
"""One child that is waited for loses nothing by being near; longer, and others could move in."""
CROWDED_SECONDS = 1e-3
"""A child that was near and took longer had to wait for others. Found out afterwards: a timer that
comes before the kernel's own tick costs more than the step."""
_APART_FIRST, _APART_MOST = 2, 64
"""So many requests stay away from a processor that was found busy, twice as many each time."""

_SET_BYTES = 128
"""A set of 1,024 processors, as the kernel takes it. Where it has more, nobody is held."""
_Set = ctypes.c_char * _SET_BYTES
# These calls never wait: handing the interpreter's lock over for each would cost more than they do.
_libc = ctypes.PyDLL(None)


class Hold:
    """Keeps the calling thread on its processor until `release`.

    What was allowed before is read each time and given back: the caller may have changed it since.
    """

    __slots__ = ("_before",)

    def __init__(self) -> None:
        before = _Set()
        held = _libc.sched_getaffinity(0, _SET_BYTES, before) >= 0 and (
            _libc.sched_setaffinity(0, _SET_BYTES, _only(_libc.sched_getcpu())) == 0
        )
        self._before = before if held else None

    def release(self) -> None:
        """Let the thread go where it might before; may be called twice."""
        if self._before is not None:
            _libc.sched_setaffinity(0, _SET_BYTES, self._before)
            self._before = None


@functools.cache
def _only(processor: int) -> bytes:
    """Return the set that has only this processor."""
    return (1 << processor).to_bytes(_SET_BYTES, sys.byteorder)


class Placement:
    """Where one child computes. Used by one thread at a time, while the child waits for a request.

    Args:
        pid: the child.
    """

    __slots__ = ("_apart", "_bound", "_everywhere", "_next_apart", "_pid")

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._bound = -1
        self._everywhere: set[int] = set()
        self._apart = 0
        self._next_apart = _APART_FIRST

    def near(self) -> bool:
        """Bind the child to the processor of the calling thread; says whether it is bound now."""
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
        return True

    def free(self) -> None:
        """Let the child compute where the kernel puts it."""
        if self._bound >= 0:
            self._bound = -1
            with contextlib.suppress(OSError):
                os.sched_setaffinity(self._pid, self._everywhere)

    def crowded(self) -> None:
        """Let the child go that was too slow where it is, and keep it away for a while."""
        self._apart = self._next_apart
        self._next_apart = min(2 * self._next_apart, _APART_MOST)
        self.free()
