"""How far all runs are, on stderr."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from spade_train.evidence.arms import Planned
from spade_train.run_folder import RunFolder

_LOOK_SECONDS = 2.0
_PLAIN_SECONDS = 60.0


class Progress:
    """Steps of all runs, with rate and time left; redrawn on a terminal, a line a minute elsewhere.

    Args:
        planned: all runs.
    """

    def __init__(self, planned: Sequence[Planned]) -> None:
        self._planned = planned
        self._terminal = sys.stderr.isatty()
        self._total = sum(one.config.steps for one in planned)
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Progress:
        """Begin to look."""
        self._first, self._began, self._shown = self._done(), time.monotonic(), 0.0
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop looking."""
        self._over.set()
        self._thread.join()
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def tell(self, text: str) -> None:
        """Print a line of news."""
        with self._lock:
            print(f"{_wipe(self._terminal)}{text}", file=sys.stderr, flush=True)

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            now = time.monotonic()
            if self._terminal or now - self._shown >= _PLAIN_SECONDS:
                self._shown = now
                with self._lock:
                    end = "" if self._terminal else "\n"
                    text = f"{_wipe(self._terminal)}{self._line(now)}"
                    print(text, end=end, file=sys.stderr, flush=True)

    def _line(self, now: float) -> str:
        done = self._done()
        fresh, seconds = done - self._first, now - self._began
        line = f"{done} of {self._total} steps of {len(self._planned)} runs"
        if fresh > 0:
            left = (self._total - done) * seconds / fresh
            line += f", {seconds / fresh:.1f} s a step, about {_spoken(left)} left"
        return line

    def _done(self) -> int:
        return sum(min(_lines(one.folder), one.config.steps) for one in self._planned)


def _wipe(terminal: bool) -> str:
    return "\r\x1b[K" if terminal else ""


def _lines(folder: Path) -> int:
    try:
        return RunFolder(folder).metrics.read_bytes().count(b"\n")
    except OSError:
        return 0


def _spoken(seconds: float) -> str:
    """Return a span as a person says it.

    >>> _spoken(59), _spoken(600), _spoken(9000)
    ('1 min', '10 min', '2 h 30 min')
    """
    minutes = max(1, round(seconds / 60))
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
