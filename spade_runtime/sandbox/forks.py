"""Tells a process that was forked off from the one that opened a sandbox.

A fork copies handles, not children: both processes would write into one pipe, and the copy's end
would end the children of the other.
"""

from __future__ import annotations

import os

from spade_runtime.errors import UsageError

_generation = 0


def generation() -> int:
    """How many forks lie between this process and the one that imported this module first."""
    return _generation


def must_be_own(born: int) -> None:
    """Refuse to use what another process opened.

    Args:
        born: the generation that opened it.

    Raises:
        UsageError: this process was forked off since.
    """
    if born != _generation:
        raise UsageError(
            "this sandbox was opened by the process that this one was forked off from; open "
            "environments anew here, or start processes by `spawn`"
        )


def _forked() -> None:
    global _generation
    _generation += 1


os.register_at_fork(after_in_child=_forked)
