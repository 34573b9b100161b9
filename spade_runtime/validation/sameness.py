"""Is a play the same in every process, after other plays, and in an instance that was used?

The two rooms have different histories: another order of seeds, and `solution()` is called in one of
them only. A sound file shows no difference at all. Where one shows, the episode is played alone in
two fresh children, one a room: if those differ as well, the file is not deterministic (SPD306,
SPD404, SPD507), and if they agree, something was left behind by other episodes (SPD405).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from spade_runtime.sandbox.channel import RawChild
from spade_runtime.validation.bench import Bench, Room
from spade_runtime.validation.games import Play, Start, same_start
from spade_runtime.validation.replayers import (
    E,
    GameReplayer,
    Replayer,
    ToolReplayer,
    start_parting,
)
from spade_runtime.validation.tooluse import ToolPlay

UNSTEADY = ("SPD306", "SPD404", "SPD405", "SPD507")
_SAMPLE = 64
_LATER = 32
_REUSED = 24
_SOLUTIONS = 6
_ROOMS: tuple[Room, Room] = ("main", "replay")


class Sameness(Generic[E]):
    """Compares the plays of one file.

    Args:
        bench: the file.
        replayer: plays its episodes again.
    """

    def __init__(self, bench: Bench, replayer: Replayer[E]) -> None:
        self._bench = bench
        self._replayer = replayer

    def starts(self, seeds: Sequence[int], starts: Sequence[Start]) -> None:
        """Compare resets that were made in another room and order."""
        for seed, start in zip(seeds, starts, strict=True):
            if not same_start(self._bench.starts[seed], start):
                self._diagnose(self._replayer.alone(seed, self._bench.starts[seed]))
                return

    def rooms(self, plays: Sequence[E]) -> None:
        """Play a sample again in the other room."""
        step = max(1, len(plays) // _SAMPLE)
        self._compare(self._bench.child("replay"), plays[::step])

    def later(self, plays: Sequence[E]) -> None:
        """Play some of the first and last episodes again in the same process."""
        self._compare(self._bench.child("main"), [*plays[:_LATER], *plays[_LATER:][-8:]])

    def reused(self, plays: Sequence[E]) -> None:
        """Reset instances that were built under other seeds: the play must be the same (SPD308)."""
        bench = self._bench
        if bench.findings.has(*UNSTEADY):
            return
        sound = [play for play in plays if play.problem is None]
        sample = sound[:: max(1, len(sound) // _REUSED)]
        again = self._replayer.again(bench.child("replay"), sample, reused=True)
        for play, other in zip(sample, again, strict=True):
            place = self._replayer.difference(play, other)
            alike = same_start(play.start, other.start)
            if alike and place is None:
                continue
            what = (
                start_parting(play.start, other.start)
                if not alike or place is None
                else self._replayer.parting(play, other, place)
            )
            bench.found(
                "SPD308",
                "an instance that was built under another seed, and reset with this one, must "
                f"give the same task as a fresh one: {what}",
                seed=play.seed,
            )
            return

    def solutions(self) -> None:
        """The solution must be the same in the other room."""
        bench = self._bench
        seeds = [seed for seed in bench.seeds if seed in bench.solutions][:_SOLUTIONS]
        if not seeds or bench.findings.has(*UNSTEADY):
            return
        for seed, found in zip(seeds, bench.solve("main", seeds), strict=True):
            if found == bench.solutions[seed]:
                continue
            pair = [bench.solve(room, [seed], fresh=True)[0] for room in _ROOMS]
            steady = pair[0] == pair[1]
            bench.found(
                "SPD405" if steady else "SPD306",
                "solution() gives something else after other episodes in the same process"
                if steady
                else "one seed must give one solution; a second process gave another",
                seed=seed,
            )
            return

    def _compare(self, child: RawChild, plays: Sequence[E]) -> None:
        if self._bench.findings.has(*UNSTEADY):
            return
        again = self._replayer.again(child, plays)
        for play, other in zip(plays, again, strict=True):
            if not same_start(play.start, other.start) or (
                play.problem is None and self._replayer.difference(play, other) is not None
            ):
                self._diagnose(play)
                return

    def _diagnose(self, play: E) -> None:
        """Play an episode alone in two fresh processes, and say what its difference means."""
        bench = self._bench
        bench.stop = True
        one, other = (self._replayer.again(bench.fresh(room), [play])[0] for room in _ROOMS)
        if not same_start(one.start, other.start):
            what = start_parting(one.start, other.start)
            bench.found(
                "SPD306",
                f"one seed must give one task in every process; in a second one {what}",
                seed=play.seed,
            )
            return
        place = self._replayer.difference(one, other)
        if place is not None:
            bench.found(
                self._replayer.code,
                "the same seed and actions must give the same in every process; in a second one "
                + self._replayer.parting(one, other, place),
                seed=play.seed,
                action=self._replayer.action(play, place),
            )
            return
        bench.found(
            "SPD405",
            "this seed and these actions give something else after other episodes in the same "
            "process: a class-level value, a module's variable or a default argument remembers",
            seed=play.seed,
        )


def games(bench: Bench) -> Sameness[Play]:
    """Comparisons of a game."""
    return Sameness(bench, GameReplayer(bench))


def tools(bench: Bench) -> Sameness[ToolPlay]:
    """Comparisons of a tool-use environment."""
    return Sameness(bench, ToolReplayer(bench))
