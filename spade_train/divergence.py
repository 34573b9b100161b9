"""Updates that had to be thrown away: said at the first, and the run's end where they go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spade_train.errors import Diverged
from spade_train.state import RunState

# So many updates in a row that had to be thrown away end a run: it will not recover by itself.
PATIENCE = 10


def heed_thrown_updates(
    state: RunState, news: Mapping[str, Any], step: int, warn: Callable[[str], None]
) -> None:
    """Count an update whose gradient was not finite, and tell of it.

    Args:
        state: holds the count, so that a resumed run goes on counting.
        news: metrics of the update.
        step: of the update.
        warn: told of the first one in a row.

    Raises:
        Diverged: the last updates all had to be thrown away.
    """
    if not news:
        return  # nothing was trained
    thrown = any(v for k, v in news.items() if k.startswith("guards/skipped_updates"))
    state.failed_updates = state.failed_updates + 1 if thrown else 0
    if state.failed_updates >= PATIENCE:
        raise Diverged(
            f"{PATIENCE} updates in a row had no finite gradient: these weights learn nothing any "
            f"more; begin a new run with a lower learning_rate or a higher kl_coefficient"
        )
    if state.failed_updates == 1:
        warn(
            f"the update of step {step} had no finite gradient and was thrown away; {PATIENCE} in "
            f"a row end the run"
        )


def tell_of_bad_end(state: RunState, warn: Callable[[str], None]) -> None:
    """Say that a run has ended with updates that were thrown away: its weights are no good."""
    if state.failed_updates:
        warn(
            f"the last {state.failed_updates} of the run's updates had no finite gradient: its "
            f"weights may have diverged; begin a new run with a lower learning_rate"
        )
