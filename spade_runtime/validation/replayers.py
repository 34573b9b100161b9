"""Replayers: play recorded episodes of games or of tool use again, and say where they part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.wire import RawReset, RawStep, RawTool
from spade_runtime.validation.bench import Bench
from spade_runtime.validation.games import Play, Start, first_difference, script
from spade_runtime.validation.text import parting
from spade_runtime.validation.tooluse import ToolPlay, recital, spoken

E = TypeVar("E", bound=Play | ToolPlay)


class Replayer(Protocol[E]):
    """Plays recorded episodes again, and compares them.

    Attributes:
        code: the finding code of a difference between two processes.
    """

    code: str

    def again(self, child: RawChild, plays: Sequence[E], *, reused: bool = False) -> list[E]:
        """Play the same under the same seeds."""

    def difference(self, left: E, right: E) -> int | None:
        """The first place that differs."""

    def parting(self, left: E, right: E, place: int) -> str:
        """How that place differs, in words that are the same in every run."""

    def action(self, play: E, place: int) -> str:
        """What was said or called at a place."""

    def alone(self, seed: int, start: Start) -> E:
        """An episode of which only the reset counts."""


class GameReplayer:
    """Replays games."""

    code = "SPD404"

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def again(self, child: RawChild, plays: Sequence[Play], *, reused: bool = False) -> list[Play]:
        """Play the same actions under the same seeds."""
        return self._bench.table(child).play(
            [play.seed for play in plays],
            [script(play.actions) for play in plays],
            [len(play.actions) for play in plays],
            reused=reused,
        )

    def difference(self, left: Play, right: Play) -> int | None:
        """The first step that differs."""
        return first_difference(left, right)

    def parting(self, left: Play, right: Play, place: int) -> str:
        """How that step differs, in words that are the same in every run."""
        first, second = (
            one.replies[place] if place < len(one.replies) else None for one in (left, right)
        )
        if not isinstance(first, RawStep) or not isinstance(second, RawStep):
            return f"step {place + 1} raised or ended otherwise"
        if first.observation != second.observation:
            where = parting(str(first.observation), str(second.observation))
            return f"step {place + 1} gave a text that {where}"
        if first.reward != second.reward:
            return f"step {place + 1} paid another reward than {first.reward}"
        if (first.terminated, first.truncated) != (second.terminated, second.truncated):
            return f"step {place + 1} did not end the episode alike"
        return f"step {place + 1} gave another info"

    def action(self, play: Play, place: int) -> str:
        """The action of a step."""
        return play.actions[place] if place < len(play.actions) else ""

    def alone(self, seed: int, start: Start) -> Play:
        """An episode of which only the reset counts."""
        return Play(seed, start)


class ToolReplayer:
    """Replays tool-use episodes."""

    code = "SPD507"

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def again(
        self, child: RawChild, plays: Sequence[ToolPlay], *, reused: bool = False
    ) -> list[ToolPlay]:
        """Make the same calls under the same seeds."""
        return self._bench.desk(child).play(
            [play.seed for play in plays],
            [recital(play.calls) for play in plays],
            [len(play.calls) for play in plays],
            reused=reused,
        )

    def difference(self, left: ToolPlay, right: ToolPlay) -> int | None:
        """The first call that differs."""
        for place, (one, other) in enumerate(zip(left.replies, right.replies, strict=False)):
            if not isinstance(one, RawTool) or not isinstance(other, RawTool):
                if type(one) is not type(other):
                    return place
            elif one.result != other.result or (
                isinstance(one.done, bool)
                and isinstance(other.done, bool)
                and one.done != other.done
            ):
                return place
        shorter = min(len(left.replies), len(right.replies))
        return None if len(left.replies) == len(right.replies) else shorter

    def parting(self, left: ToolPlay, right: ToolPlay, place: int) -> str:
        """How that call differs, in words that are the same in every run."""
        name = left.calls[place][0] if place < len(left.calls) else "the last"
        first, second = (
            one.replies[place] if place < len(one.replies) else None for one in (left, right)
        )
        if not isinstance(first, RawTool) or not isinstance(second, RawTool):
            return f"tool {name} raised or ended otherwise"
        if first.result != second.result:
            return f"tool {name} gave a result that " + parting(
                str(first.result), str(second.result)
            )
        return f"tool {name} completed the user's turn in one of them only"

    def action(self, play: ToolPlay, place: int) -> str:
        """The call at a place."""
        return spoken(play.calls[place]) if place < len(play.calls) else ""

    def alone(self, seed: int, start: Start) -> ToolPlay:
        """An episode of which only the reset counts."""
        return ToolPlay(seed, start)


def start_parting(left: Start, right: Start) -> str:
    """How two resets differ, in words that are the same in every run."""
    if isinstance(left, RawReset) and isinstance(right, RawReset):
        if left.observation != right.observation:
            return "the first observation " + parting(str(left.observation), str(right.observation))
        return "the instructions are others" if left.turns != right.turns else "info is another"
    return "reset raised in one of them only"
