"""Fills the gaps in the zygote's heap, so that a child's first objects lie close together.

What imports and the rehearsal freed leaves gaps all over the heap. A child that fills them copies a
page for every few objects, some 4 us and 4 KiB each; to read a source took twice the pages.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

_STEP, _LARGEST = 16, 512
"""Sizes of Python's small objects, in bytes; each has pools of its own."""
_FRESH = 12_000
"""So many bytes in one run are a pool that nobody had used."""
_MOST = 8192
"""Objects of one size: another allocator may have no runs at all."""
_HEADER = bytes(0).__sizeof__()


def fill() -> list[list[Any]]:
    """Fill the gaps of every size; they stay filled as long as what this returns is kept."""
    return [_filled(size) for size in range(_STEP, _LARGEST + 1, _STEP)]


def _filled(size: int) -> list[Any]:
    make = _maker(size)
    kept: list[Any] = []
    last, run = 0, 0
    while len(kept) < _MOST and run * size < _FRESH:
        kept.append(make())
        here = id(kept[-1])
        # Not one beside the other: the numbers of this loop take some of the places.
        run = run + 1 if abs(here - last) <= 4 * size else 0
        last = here
    return kept


def _maker(size: int) -> Callable[[], Any]:
    """What makes an object that takes a place of this size, and refers to no other."""
    if size > _HEADER:
        return lambda: bytes(size - _HEADER)
    return object if size == _STEP else itertools.count(1 << 29).__next__
