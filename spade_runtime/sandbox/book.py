"""The parent's book of a session's episodes: turns, ends, pay, credit, wins and faults."""

from __future__ import annotations

from copy import deepcopy
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
        solved = terminated and checks.is_solved(step, self.spec)
        info["spade"] = {"turn": turn, "solved": solved, "fault": None, "action": action}
        return StepResult(step.observation, step.reward, terminated, truncated, info)

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
