"""Seeds of episodes: what they may be (contract.md section 1)."""

from __future__ import annotations

from operator import index
from typing import Any

from spade_runtime.errors import UsageError

SEED_END = 1 << 31


def checked_seed(value: Any) -> int:
    """A seed as a plain integer; numpy's are taken too, truth values are not.

    Raises:
        UsageError: it is none.

    >>> checked_seed(7)
    7
    """
    try:
        number = -1 if isinstance(value, bool) else index(value)
    except TypeError:
        number = -1
    if not 0 <= number < SEED_END:
        raise UsageError(f"a seed is an integer from 0 to {SEED_END - 1}, not {value!r:.60}")
    return number
