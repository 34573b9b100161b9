"""What children have made of sources by reading them, kept by the sources' hashes.

The static gates parse text that may be hostile, so they run in a child, and always in one that runs
none of it: what they say of a text is the same each time, and every child that plays it has the
same history, whether it is the first one or the thousandth, in validation or in training.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable

from spade_runtime.sandbox.wire import Reading

MOST_BYTES = 64 * 1024 * 1024
_LOCKS = 64
_OVERHEAD = 4096


class Readings:
    """The readings of one pool; those used longest ago are forgotten. Thread-safe.

    Args:
        most_bytes: what they may weigh together, about.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._weight = 0
        self._kept: OrderedDict[bytes, tuple[Reading, int]] = OrderedDict()
        self._lock = threading.Lock()
        # Two that want the same source: the second waits for the first one's reading.
        self._asking = [threading.Lock() for _ in range(_LOCKS)]

    def of(self, source: str, *, policy: bool, read: Callable[[], Reading]) -> Reading:
        """Give the reading of a source.

        Args:
            source: the text.
            policy: it is held to the static policy.
            read: has a fresh child read it; what it raises goes through, and nothing is kept.
        """
        key = hashlib.sha256(source.encode("utf-8", "surrogatepass")).digest() + bytes([policy])
        if (found := self._look(key)) is not None:
            return found
        with self._asking[key[0] % _LOCKS]:
            if (found := self._look(key)) is not None:
                return found
            reading = read()
            self._keep(key, reading, len(source) + len(reading.code or b"") + _OVERHEAD)
        return reading

    def _look(self, key: bytes) -> Reading | None:
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def _keep(self, key: bytes, reading: Reading, weight: int) -> None:
        with self._lock:
            self._kept[key] = reading, weight
            self._weight += weight
            while self._weight > self._most:
                _, (_, gone) = self._kept.popitem(last=False)
                self._weight -= gone
