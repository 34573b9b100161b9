"""How a run shows itself on a terminal: progress on stderr, results on stdout."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from spade_train.told import percent, signed


class _Rate(ProgressColumn):
    """Seconds a step."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{1 / speed:.1f} s/step" if speed else "- s/step", style="progress.data.speed")


class StepProgress:
    """A bar of steps with rate and time left, and the phase that is under way.

    Where stderr is no terminal it prints one plain line a step instead, and one for each phase of
    the first step: nobody knows yet how long a step takes.

    Args:
        steps: of the whole run.
        done: how many it has behind it.
    """

    def __init__(self, steps: int, done: int = 0) -> None:
        self.console = Console(stderr=True)
        self._plain = not self.console.is_terminal
        self._steps = steps
        self._current = done + 1
        self._first = True
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<10}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[news]}"),
            console=self.console,
        )
        self._task = self._bar.add_task("starting", total=steps, completed=done, news="")

    def __enter__(self) -> StepProgress:
        """Show the bar."""
        if not self._plain:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar down."""
        if not self._plain:
            self._bar.stop()

    def phase(self, name: str) -> None:
        """Show which part of a step is under way."""
        self._bar.update(self._task, description=name)
        if self._plain and self._first:
            place = "after the last step" if self._current > self._steps else self._count()
            print(f"{place}: {name}", file=sys.stderr, flush=True)

    def _count(self) -> str:
        return f"step {self._current}/{self._steps}"

    def step_done(self, line: dict[str, Any]) -> None:
        """Move on by a step, and show its main numbers."""
        news = headline(line)
        if line.get("flush"):
            place = "after the last step"
            news = ", ".join(filter(None, ["the last designs were paid", news]))
        else:
            place = self._count()
            self._current = line["step"] + 2
            news = news or "nothing was played"
            self._bar.update(self._task, completed=line["step"] + 1, news=news)
        self._first = False
        if self._plain:
            print(f"{place}, {line['seconds']:.1f} s: {news}", file=sys.stderr, flush=True)

    def warn(self, text: str) -> None:
        """Say what went wrong where the run goes on."""
        self.console.print(f"spade: warning: {text}", style="yellow", highlight=False)


def headline(line: Mapping[str, Any]) -> str:
    """Return a step's main numbers in a few words.

    >>> headline({"agent/win_rate": 0.25, "designer/regret": 0.5})
    'wins 25 %, regret +0.50'
    """
    parts: list[tuple[str, str, Callable[[float], str]]] = [
        ("wins", "agent/win_rate", percent),
        ("with hint", "agent/win_rate_hinted", percent),
        ("regret", "designer/regret", signed),
        ("accepted", "designer/acceptance", percent),
        ("in band", "designer/band_share", percent),
        ("held out", "heldout/win_rate", percent),
    ]
    shown = [f"{name} {form(line[key])}" for name, key, form in parts if line.get(key) is not None]
    return ", ".join(shown)


class Stop:
    """Whether the person asked to stop; the second time stops at once."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> bool:
        """Whether to stop at the next step's end."""
        return self.asked

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        print(
            "\nspade: stopping at the end of this step; once more stops at once "
            "(the last checkpoint stays)",
            file=sys.stderr,
            flush=True,
        )


@contextmanager
def stop_requests() -> Iterator[Stop]:
    """Turn Ctrl-C and a polite kill into a stop at a step's end."""
    stop = Stop()
    before = {n: signal.signal(n, stop._handle) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
