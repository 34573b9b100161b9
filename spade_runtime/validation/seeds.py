"""Seeds of the gates: drawn from the source itself, so that no file can know them beforehand."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator

SEED_LIMIT = 2**31
"""Reset seeds lie in [0, 2**31), in validation and in training alike."""


class SeedStream:
    """Independent streams of reset seeds and of choices, named by labels.

    Args:
        source: the bytes of the source.

    >>> SeedStream(b"x").seeds("reset", 2) == SeedStream(b"x").seeds("reset", 3)[:2]
    True
    """

    def __init__(self, source: bytes) -> None:
        self._root = hashlib.sha256(b"spade validation\0" + source).digest()

    def _numbers(self, label: str) -> Iterator[int]:
        counter = 0
        while True:
            block = hashlib.sha256(self._root + f"\0{label}\0{counter}".encode()).digest()
            for start in range(0, 32, 4):
                yield int.from_bytes(block[start : start + 4], "big") % SEED_LIMIT
            counter += 1

    def seeds(self, label: str, count: int) -> list[int]:
        """The first `count` different seeds of a stream."""
        found: dict[int, None] = {}
        for number in self._numbers(label):
            if len(found) == count:
                break
            found[number] = None
        return list(found)

    def chooser(self, label: str) -> random.Random:
        """A generator for the validator's own choices (which action to try next)."""
        return random.Random(hashlib.sha256(self._root + f"\0choice\0{label}".encode()).digest())
