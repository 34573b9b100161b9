"""How long a call takes."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable


def timed(call: Callable[[], object], times: int) -> dict[str, float]:
    """Seconds of one call: the median and the best."""
    seen = []
    gc.collect()
    for _ in range(times):
        start = time.perf_counter()
        call()
        seen.append(time.perf_counter() - start)
    return {"median": statistics.median(seen), "best": min(seen)}
