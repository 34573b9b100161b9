"""Plays games in a child: many seeds and players at once, one message for each round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from spade_runtime.codes import is_fault
from spade_runtime.errors import EnvFault, Evidence
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.wire import Bad, Raised, RawReset, RawStep
from spade_runtime.validation.replies import Problem, ReplyChecker, same_json

Player = Callable[[str, int], str | None]
"""Chooses an action from the last observation and the turn (from 0); None stops playing."""
Start = RawReset | Raised | Bad
Reply = RawStep | Raised | Bad

SLOTS = 256
"""Instances of one child that play at once."""


Suspect = tuple[int, Sequence[str]] | tuple[int, Sequence[tuple[str, bytes, int]]]
"""A reset seed, and the actions or calls up to the one that may be at fault."""


class PlayFault(Exception):
    """A fault of the process in the middle of a batch.

    A child sends what it has every few milliseconds, so several calls may be meant.

    Attributes:
        fault: what the channel raised.
        suspects: the episodes that were under way, the likeliest first.
        seed: the reset seed, where it is known.
        action: the action or call, where it is known.
    """

    def __init__(
        self,
        fault: EnvFault,
        suspects: Sequence[Suspect] = (),
        *,
        seed: int | None = None,
        action: str | None = None,
    ) -> None:
        super().__init__(str(fault))
        self.fault = fault
        self.suspects = list(suspects)[fault.evidence.place or 0 :]
        self.seed = seed
        self.action = action


def stop_at_fault(problem: Problem | None, seed: int, action: str | None) -> None:
    """End everything at the first 8xx problem.

    Raises:
        PlayFault: the problem is one.
    """
    if problem is not None and is_fault(problem.code):
        evidence = Evidence(line=problem.line)
        fault = EnvFault(problem.message, code=problem.code, evidence=evidence)
        raise PlayFault(fault, seed=seed, action=action)


def script(actions: Sequence[str]) -> Player:
    """A player that says what stands written, then stops."""

    def act(_: str, turn: int) -> str | None:
        return actions[turn] if turn < len(actions) else None

    return act


def always(action: str) -> Player:
    """A player that repeats one action."""
    return lambda _, __: action


@dataclass(slots=True)
class Play:
    """One episode as it was seen.

    Attributes:
        seed: the reset seed.
        start: the reply to `reset`.
        actions: what was said.
        replies: what came back, one for each action.
        ended: the last reply ended the episode.
        solved: it terminated with the reward that solving pays, seen by the parent.
        problem: what was wrong with the last reply.
        total: sum of the rewards.
    """

    seed: int
    start: Start
    actions: list[str] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    ended: bool = False
    solved: bool = False
    problem: Problem | None = None
    total: float = 0.0


class Table:
    """Plays games in the slots of one child.

    Args:
        child: the child; its class is loaded.
        checker: judges the replies.
        positive_wins: a terminated episode with any positive last reward counts as solved
            (the published dialect).
    """

    def __init__(
        self, child: RawChild, checker: ReplyChecker, *, positive_wins: bool = False
    ) -> None:
        self.child = child
        self._checker = checker
        self._positive_wins = positive_wins

    def check_start(self, start: Start) -> Problem | None:
        """What is wrong with a reset, or None."""
        return self._checker.reset(start)

    def openings(self, seeds: Sequence[int]) -> list[str]:
        """The first observation of each seed, empty where there is none."""
        return [
            start.observation
            if isinstance(start, RawReset) and isinstance(start.observation, str)
            else ""
            for start in self.starts(seeds)
        ]

    def starts(self, seeds: Sequence[int]) -> list[Start]:
        """Reset one fresh instance for each seed."""
        found: list[Start] = []
        for first in range(0, len(seeds), SLOTS):
            found += begun(self.child, seeds[first : first + SLOTS])
        return found

    def play(
        self,
        seeds: Sequence[int],
        players: Sequence[Player],
        turns: int | Sequence[int],
        *,
        reused: bool = False,
    ) -> list[Play]:
        """Play one episode for each seed and player.

        Args:
            seeds: a reset seed for each episode.
            players: who plays it.
            turns: how many actions at most, for all or for each.
            reused: reset instances that were built, and reset, under other seeds.
        """
        limits = [turns] * len(seeds) if isinstance(turns, int) else list(turns)
        plays: list[Play] = []
        for first in range(0, len(seeds), SLOTS):
            last = first + SLOTS
            part = slice(first, last)
            plays += self._batch(seeds[part], players[part], limits[part], reused)
        return plays

    def _batch(
        self,
        seeds: Sequence[int],
        players: Sequence[Player],
        turns: Sequence[int],
        reused: bool,
    ) -> list[Play]:
        starts = begun(self.child, seeds, reused)
        plays = [Play(seed, start) for seed, start in zip(seeds, starts, strict=True)]
        seen: list[str] = []
        for play in plays:
            play.problem = self._checker.reset(play.start)
            stop_at_fault(play.problem, play.seed, None)
            seen.append("" if play.problem else play.start.observation)  # type: ignore[union-attr,arg-type]
        active = [slot for slot, play in enumerate(plays) if play.problem is None]
        turn = 0
        while active:
            slots, actions = [], []
            for slot in active:
                action = players[slot](seen[slot], turn) if turn < turns[slot] else None
                if action is not None:
                    slots.append(slot)
                    actions.append(action)
            if not slots:
                break
            try:
                replies = self.child.step(slots, actions)
            except EnvFault as fault:
                suspects = [
                    (seeds[slot], [*plays[slot].actions, action])
                    for slot, action in zip(slots, actions, strict=True)
                ]
                raise PlayFault(fault, suspects) from fault
            active = []
            for slot, action, reply in zip(slots, actions, replies, strict=True):
                if self._take(plays[slot], action, reply):
                    seen[slot] = reply.observation  # type: ignore[union-attr,assignment]
                    active.append(slot)
            turn += 1
        return plays

    def _take(self, play: Play, action: str, reply: Reply) -> bool:
        """Record a reply; whether the episode goes on."""
        play.actions.append(action)
        play.replies.append(reply)
        play.problem = self._checker.step(reply)
        if play.problem is not None or type(reply) is not RawStep:
            stop_at_fault(play.problem, play.seed, action)
            return False
        reward: float = reply.reward  # type: ignore[assignment]
        play.total += max(-1.0, min(1.0, reward))
        play.ended = reply.terminated is True or reply.truncated is True
        if reply.terminated is True:
            play.solved = reward > 0 if self._positive_wins else reward == 1.0
        return not play.ended


def begun(child: RawChild, seeds: Sequence[int], reused: bool = False) -> list[Start]:
    """Reset the first slots of a child, in instances that are fresh or were used before.

    Raises:
        PlayFault: the child died, hung or broke the protocol.
    """
    slots = range(len(seeds))
    try:
        if reused:
            child.reset(slots, [(seed + 1) % 2**31 for seed in seeds])
        return child.reset(slots, seeds, fresh=not reused)
    except EnvFault as fault:
        no_actions: list[str] = []
        raise PlayFault(fault, [(seed, no_actions) for seed in seeds]) from fault


def same_start(left: Start, right: Start) -> bool:
    """Whether two resets gave the same observation, info and instructions."""
    if type(left) is RawReset and type(right) is RawReset:
        return (
            left.observation == right.observation
            and left.turns == right.turns
            and same_json(left.info, right.info)
        )
    return _plain(left) == _plain(right)


def same_reply(left: Reply, right: Reply) -> bool:
    """Whether two steps gave the same five values."""
    if type(left) is RawStep and type(right) is RawStep:
        return (
            left.observation == right.observation
            and left.reward == right.reward
            and left.terminated == right.terminated
            and left.truncated == right.truncated
            and same_json(left.info, right.info)
        )
    return _plain(left) == _plain(right)


def _plain(reply: Start | Reply) -> tuple[object, ...]:
    if type(reply) is Raised:
        return (Raised, reply.exc_type, reply.line)
    return (type(reply),)


def first_difference(left: Play, right: Play) -> int | None:
    """Index of the first step at which two episodes of the same actions differ, None if none."""
    for place, (one, other) in enumerate(zip(left.replies, right.replies, strict=False)):
        if one is not other and not same_reply(one, other):
            return place
    return (
        None
        if len(left.replies) == len(right.replies)
        else min(len(left.replies), len(right.replies))
    )
