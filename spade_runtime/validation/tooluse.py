"""Plays tool-use environments in a child, call by call, with the parent keeping the turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from spade_runtime.dialects import ANSWER
from spade_runtime.errors import EnvFault
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.wire import Raised, RawCriterion, RawReset, RawTool
from spade_runtime.validation.calls import ToolCall
from spade_runtime.validation.games import SLOTS, PlayFault, Start, begun, stop_at_fault
from spade_runtime.validation.replies import Problem, ReplyChecker, criterion_problem
from spade_runtime.validation.text import shown

Caller = Callable[["ToolPlay"], ToolCall | None]
"""Chooses a call from what has been seen so far; None stops playing."""


def spoken(call: ToolCall) -> str:
    """A call as a message shows it."""
    return f"{call[0]}({call[1].decode(errors='replace')})"


def recital(calls: Sequence[ToolCall]) -> Caller:
    """A caller that makes the calls written down, then stops."""

    def choose(play: ToolPlay) -> ToolCall | None:
        return calls[len(play.calls)] if len(play.calls) < len(calls) else None

    return choose


def by_turns(turns: Sequence[Sequence[ToolCall]]) -> Caller:
    """A caller that makes each user turn's calls, as one message of an agent would hold them.

    Calls that are left when their turn is complete are not made; it stops where they don't
    complete it.
    """
    at = [0, 0]

    def choose(play: ToolPlay) -> ToolCall | None:
        if play.completed > at[0]:
            at[:] = [play.completed, 0]
        calls = turns[at[0]] if at[0] < len(turns) else ()
        if at[1] >= len(calls):
            return None
        at[1] += 1
        return calls[at[1] - 1]

    return choose


@dataclass(slots=True)
class ToolPlay:
    """One episode of tool use as it was seen.

    Attributes:
        seed: the reset seed.
        start: the reply to `reset`.
        calls: what was called.
        turns: the user turn (from 0) that was current at each call.
        replies: what came back, one for each call.
        completed: user turns whose criterion held.
        problem: the first thing that was wrong.
        problem_turn: the user turn of that problem.
    """

    seed: int
    start: Start
    calls: list[ToolCall] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    replies: list[RawTool | Raised] = field(default_factory=list)
    completed: int = 0
    problem: Problem | None = None
    problem_turn: int = 0

    @property
    def instructions(self) -> list[str]:
        """The user's instructions, also those not yet revealed."""
        turns = self.start.turns if type(self.start) is RawReset else None
        return turns or []

    @property
    def solved(self) -> bool:
        """Whether every user turn was completed."""
        return 0 < len(self.instructions) == self.completed

    def made(self) -> list[tuple[str, bytes, int]]:
        """The calls as they were sent, each with its user turn."""
        return [(*call, turn) for call, turn in zip(self.calls, self.turns, strict=True)]

    def texts(self) -> list[str]:
        """What an agent has been shown: revealed instructions and results."""
        found = self.instructions[: self.completed + 1]
        for reply in self.replies:
            if type(reply) is RawTool and type(reply.result) is str:
                found.append(reply.result)
        return found


class Desk:
    """Plays tool-use environments in the slots of one child.

    Args:
        child: the child; its class is loaded.
        checker: judges the replies.
    """

    def __init__(self, child: RawChild, checker: ReplyChecker) -> None:
        self.child = child
        self._checker = checker

    def play(
        self,
        seeds: Sequence[int],
        callers: Sequence[Caller],
        limit: int | Sequence[int],
        *,
        honest: bool = False,
        reused: bool = False,
    ) -> list[ToolPlay]:
        """Play one episode for each seed and caller.

        Each criterion is asked when its turn is revealed, and must not raise then.

        Args:
            seeds: a reset seed for each episode.
            callers: who plays it.
            limit: how many calls at most, for all or for each.
            honest: the callers do what they are asked and nothing ahead of it, so a criterion
                that holds at its reveal is a flaw (SPD506).
            reused: reset instances that were built, and reset, under other seeds.
        """
        limits = [limit] * len(seeds) if isinstance(limit, int) else list(limit)
        plays: list[ToolPlay] = []
        for first in range(0, len(seeds), SLOTS):
            last = first + SLOTS
            part = slice(first, last)
            plays += self._batch(seeds[part], callers[part], limits[part], honest, reused)
        return plays

    def _batch(
        self,
        seeds: Sequence[int],
        callers: Sequence[Caller],
        limits: Sequence[int],
        honest: bool,
        reused: bool,
    ) -> list[ToolPlay]:
        starts = begun(self.child, seeds, reused)
        plays = [ToolPlay(seed, start) for seed, start in zip(seeds, starts, strict=True)]
        for play in plays:
            play.problem = self._checker.reset(play.start)
        active = [slot for slot, play in enumerate(plays) if play.problem is None]
        self._reveal(plays, active, honest)
        active = [slot for slot in active if plays[slot].problem is None]
        while active:
            slots, calls = [], []
            for slot in active:
                play = plays[slot]
                call = callers[slot](play) if len(play.calls) < limits[slot] else None
                if call is not None:
                    slots.append(slot)
                    calls.append((*call, play.completed))
            if not slots:
                break
            try:
                replies = self.child.tool(slots, calls)
            except EnvFault as fault:
                suspects = [
                    (seeds[slot], [*plays[slot].made(), call])
                    for slot, call in zip(slots, calls, strict=True)
                ]
                raise PlayFault(fault, suspects) from fault
            revealed: list[int] = []
            for slot, call_made, reply in zip(slots, calls, replies, strict=True):
                if self._take(plays[slot], (call_made[0], call_made[1]), reply):
                    revealed.append(slot)
            self._reveal(plays, [s for s in revealed if not plays[s].solved], honest)
            active = [s for s in slots if plays[s].problem is None and not plays[s].solved]
        return plays

    def _take(self, play: ToolPlay, call: ToolCall, reply: RawTool | Raised) -> bool:
        """Record a reply; whether it completed the current user turn."""
        play.calls.append(call)
        play.turns.append(play.completed)
        play.replies.append(reply)
        play.problem = self._checker.tool(reply, call[0])
        play.problem_turn = play.completed
        if play.problem is not None or type(reply) is not RawTool:
            stop_at_fault(play.problem, play.seed, str(call))
            return False
        if type(reply.done) is not bool:
            play.problem = criterion_problem(reply.done, play.completed)
            return False
        if reply.done:
            # An answer that a published class takes ends the task, whatever turn it stands in.
            play.completed = len(play.instructions) if call[0] == ANSWER else play.completed + 1
        return reply.done

    def _reveal(self, plays: Sequence[ToolPlay], slots: Sequence[int], honest: bool) -> None:
        """Ask the criteria of the turns that are being revealed."""
        asked = [slot for slot in slots if plays[slot].completed < len(plays[slot].instructions)]
        if not asked:
            return
        replies = self.child.criteria(asked, [plays[slot].completed for slot in asked])
        for slot, reply in zip(asked, replies, strict=True):
            play = plays[slot]
            done = reply.done if type(reply) is RawCriterion else reply
            play.problem_turn = play.completed
            if done is True:
                if not honest and play.calls:
                    continue
                said = shown(play.instructions[play.completed])
                play.problem = Problem(
                    "SPD506",
                    f"the criterion of turn {play.completed + 1} ({said}) holds already when the "
                    "turn is revealed; it must be false until the agent acts",
                )
            elif done is not False:
                play.problem = criterion_problem(done, play.completed)
