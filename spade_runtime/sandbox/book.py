"""The parent's book of a session's episodes: turns, ends, pay, credit, wins and faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

from spade_runtime import checks
from spade_runtime.errors import EnvFault
from spade_runtime.sandbox.toolrounds import Round
from spade_runtime.spec import EnvSpec, Limits


class ResetResult(NamedTuple):
    """What a `reset` gives: the first observation, and `info` with the runtime's part in it."""

    observation: str
    info: dict[str, Any]


class StepResult(NamedTuple):
    """What a `step` gives; Gymnasium's five values."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


# From this many on it is quicker to check a group's replies by column.
_GROUP_MIN = 4
# A named tuple's own constructor is a Python function, and takes five times as long.
_result: Callable[[tuple[Any, ...]], StepResult] = partial(tuple.__new__, StepResult)


class Moves(NamedTuple):
    """What one round did in a group of games, by column; no game of it was at fault.

    A vector reads the columns as they are; to make a result of each row, and the dictionaries of
    its info, takes longer than all the rest.

    Attributes:
        infos: what the class itself told, None where all of it is empty.
        ended: some episode of the group is over.
    """

    observations: list[str]
    rewards: list[float]
    terminated: list[bool]
    truncated: list[bool]
    turns: list[int]
    solved: list[bool]
    actions: list[str]
    infos: list[dict[str, Any]] | None
    ended: bool

    def rows(self) -> list[StepResult]:
        """The same as results."""
        infos = self.infos or [{} for _ in self.turns]
        for info, turn, solved, action in zip(
            infos, self.turns, self.solved, self.actions, strict=True
        ):
            info["spade"] = {"turn": turn, "solved": solved, "fault": None, "action": action}
        columns = self.observations, self.rewards, self.terminated, self.truncated, infos
        return list(map(_result, zip(*columns, strict=True)))


class Play:
    """One instance's episode, as the parent counts it.

    Attributes:
        limit: agent messages after which the parent truncates.
        turns: instructions of a tool-use environment.
        turn: agent messages so far.
        completed: user turns completed so far.
        over: the episode has ended.
    """

    __slots__ = ("completed", "limit", "over", "turn", "turns")

    def __init__(self, limit: int, turns: list[str]) -> None:
        self.limit = limit
        self.turns = turns
        self.turn = 0
        self.completed = 0
        self.over = False

    @property
    def credit(self) -> float:
        """Share of the user's turns completed."""
        return self.completed / len(self.turns) if self.turns else 0.0


class Book:
    """Turns raw replies into results, and keeps what the parent knows of each slot's episode.

    Args:
        spec: the environment's manifest.
        limits: what its replies may weigh.
        instances: number of slots.

    Attributes:
        plays: the episode in each slot, None before the first `reset`.
        faults: the fault that ended it, None where there was none.
    """

    def __init__(self, spec: EnvSpec, limits: Limits, instances: int) -> None:
        self.spec = spec
        self.limits = limits
        self.plays: list[Play | None] = [None] * instances
        self.faults: list[EnvFault | None] = [None] * instances
        self._is_game = spec.kind == "game"
        self._tools = [{"type": "function", "function": tool.model_dump()} for tool in spec.tools]

    def running(self, slot: int) -> bool:
        """Whether a slot's episode has begun and not ended."""
        play = self.plays[slot]
        return play is not None and not play.over

    def play(self, slot: int) -> Play:
        """The episode in a slot that has one."""
        play = self.plays[slot]
        assert play is not None
        return play

    def fail(self, slot: int, fault: EnvFault) -> None:
        """End a slot's episode by a fault."""
        self.faults[slot] = fault
        play = self.plays[slot]
        if play is not None:
            play.over = True

    def forget(self, slot: int) -> None:
        """Make a slot ready for a `reset`."""
        self.plays[slot] = None
        self.faults[slot] = None

    def begun(self, slot: int, raw: Any, limit: int) -> ResetResult:
        """The result of a `reset`, from its raw reply."""
        try:
            start = checks.beginning(raw, self.spec, self.limits)
        except EnvFault as fault:
            self.fail(slot, fault)
            return ResetResult("", {"spade": self._notes(slot, fault)})
        self.plays[slot] = Play(limit, start.turns)
        info = start.info
        info["spade"] = self._notes(slot, None)
        return ResetResult(start.observation, info)

    def _notes(self, slot: int, fault: EnvFault | None) -> dict[str, Any]:
        play = self.plays[slot]
        notes: dict[str, Any] = {
            "turn": play.turn if play else 0,
            "solved": False,
            "fault": None if fault is None else fault_notes(fault),
        }
        if not self._is_game:
            notes["credit"] = play.credit if play else 0.0
            notes["tools"] = deepcopy(self._tools)
        return notes

    def _faulted(self, slot: int, fault: EnvFault, action: Any) -> StepResult:
        self.fail(slot, fault)
        play = self.play(slot)
        spade: dict[str, Any] = {"turn": play.turn, "solved": False, "fault": fault_notes(fault)}
        if not self._is_game:
            spade["credit"] = play.credit
        spade["action"] = action
        return StepResult("", 0.0, False, True, {"spade": spade})

    def moved(self, slot: int, raw: Any, action: str) -> StepResult:
        """The result of a game's step, from its raw reply."""
        play = self.play(slot)
        play.turn = turn = play.turn + 1
        try:
            step = checks.transition(raw, self.spec, self.limits)
        except EnvFault as fault:
            return self._faulted(slot, fault, action)
        terminated, info = step.terminated, step.info
        truncated = not terminated and (step.truncated or turn >= play.limit)
        play.over = terminated or truncated
        solved = terminated and checks.wins(step.reward, self.spec)
        info["spade"] = {"turn": turn, "solved": solved, "fault": None, "action": action}
        return _result((step.observation, step.reward, terminated, truncated, info))

    def results(
        self, slots: Sequence[int], raws: Sequence[Any], actions: list[str]
    ) -> list[StepResult]:
        """The results of a round of games, from their raw replies."""
        if len(slots) >= _GROUP_MIN and (moves := self.moves(slots, raws, actions)) is not None:
            return moves.rows()
        return list(map(self.moved, slots, raws, actions))

    def moves(self, slots: Sequence[int], raws: Sequence[Any], actions: list[str]) -> Moves | None:
        """The results of a round of games by column.

        None, and nothing noted, where some reply is not plainly right.
        """
        steps = checks.transitions(raws, self.spec, self.limits)
        if steps is None:
            return None
        observations, rewards, terminated, truncated, infos = steps
        turns: list[int] = []
        ended = False
        plays = self.plays
        for place, slot in enumerate(slots):
            play: Any = plays[slot]
            play.turn = turn = play.turn + 1
            turns.append(turn)
            if terminated[place]:
                truncated[place] = False
            elif turn >= play.limit:
                truncated[place] = True
            elif not truncated[place]:
                continue
            play.over = ended = True
        solved = [False] * len(turns)
        if ended:
            for place, end in enumerate(terminated):
                solved[place] = end and checks.wins(rewards[place], self.spec)
        return Moves(
            observations, rewards, terminated, truncated, turns, solved, actions, infos, ended
        )

    def answered(self, slot: int, one: Round) -> StepResult:
        """The result of a message of tool calls, after all of them were run or answered."""
        play = self.play(slot)
        play.turn += 1
        play.completed = one.completed
        if one.fault is not None:
            return self._faulted(slot, one.fault, one.actions)
        terminated = play.completed == len(play.turns)
        truncated = not terminated and play.turn >= play.limit
        play.over = terminated or truncated
        spade = {
            "turn": play.turn,
            "credit": play.credit,
            "solved": terminated,
            "fault": None,
            "action": one.actions,
        }
        reward = 1.0 if terminated else 0.0
        return StepResult(one.observation(), reward, terminated, truncated, {"spade": spade})


def fault_notes(fault: EnvFault) -> dict[str, str]:
    """A fault as `info["spade"]["fault"]` gives it."""
    return {"kind": fault.kind, "code": fault.code, "message": str(fault)}
