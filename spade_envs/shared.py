"""The sandbox that the environments of one process share.

One pool a process and level is started when it is first needed and closed when the process ends.
A process that was forked off starts its own: the pipes of its parent are not its to use.
"""

from __future__ import annotations

import atexit
import os
import threading

from spade_runtime.sandbox.facilities import check_level
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.spec import IsolationLevel

_lock = threading.Lock()
_pools: dict[tuple[int, str], SandboxPool] = {}


def shared_pool(level: IsolationLevel = "strict") -> SandboxPool:
    """Give this process's pool, starting it if it is not there.

    Args:
        level: `strict`, `best_effort` or `none`.

    Raises:
        IsolationUnavailable: the level can't be had on this machine.
        UsageError: it is no level.
    """
    check_level(level)
    key = (os.getpid(), level)
    with _lock:
        pool = _pools.get(key)
        if pool is None:
            if not _pools:
                atexit.register(close_shared_pools)
            pool = _pools[key] = SandboxPool(level=level)
    return pool


def close_shared_pools() -> None:
    """Close this process's pools; the next environment starts another."""
    with _lock:
        mine = [key for key in _pools if key[0] == os.getpid()]
        closing = [_pools.pop(key) for key in mine]
    for pool in closing:
        pool.close()
