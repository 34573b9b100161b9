"""The parent's book of a session's episodes: turns, ends, pay, credit, wins and faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

from spade_runtime import checks
from spade_runtime.errors import EnvFault
from spade_runtime.sandbox.toolrounds import Round
from spade_runtime.sandbox.wire import Columns
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


# A named tuple's own constructor is a Python function, and takes five times as long.
_result: Callable[[tuple[Any, ...]], StepResult] = partial(tuple.__new__, StepResult)


class Moves(NamedTuple):
    """What one round did in a group of games, by column; no game of it was at fault.

    A vector reads the columns as they are; to make a result of each row, and the dictionaries of
    its info, takes longer than all the rest.

    Attributes:
        infos: what the class itself told, None where all of it is empty.
        paid: some reward is not 0.
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
    paid: bool
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


class Book:
    """Turns raw replies into results, and keeps what the parent knows of each slot's episode.

    Args:
        spec: the environment's manifest.
        limits: what its replies may weigh.
        instances: number of slots.

    Attributes:
        turns: agent messages so far, in each slot.
        completed: user turns completed so far, in each slot.
        instructions: all user turns of a tool-use environment, in each slot.
        all: the slots, in order.
        over: the slot has no episode to step: none was begun, or it has ended.
        faults: the fault that ended it, None where there was none.
    """

    def __init__(self, spec: EnvSpec, limits: Limits, instances: int) -> None:
        self.spec = spec
        self.limits = limits
        self.turns = [0] * instances
        self.completed = [0] * instances
        self.instructions: list[list[str]] = [[]] * instances
        self.over = [True] * instances
        self.faults: list[EnvFault | None] = [None] * instances
        self.all = list(range(instances))
        self._fresh = [True] * instances
        self._limits = [0] * instances
        # So many rounds at least until some episode meets its limit; most need not look.
        self._room = 0
        self._is_game = spec.kind == "game"
        self._tools = [{"type": "function", "function": tool.model_dump()} for tool in spec.tools]

    def why_over(self, slot: int) -> str:
        """Why a slot has no episode to step, in words."""
        return "was not begun" if self._fresh[slot] else "has ended"

    def fail(self, slot: int, fault: EnvFault) -> None:
        """End a slot's episode by a fault."""
        self.faults[slot] = fault
        self._fresh[slot] = False
        self.over[slot] = True

    def end_all(self) -> None:
        """End every episode: the child that played them is gone."""
        self.over = [True] * len(self.over)

    def forget(self, slot: int) -> None:
        """Make a slot ready for a `reset`."""
        self.faults[slot] = None
        self.over[slot] = self._fresh[slot] = True
        self.instructions[slot] = []
        self.completed[slot] = 0
        self._counted(slot, 0)

    def begun(self, slot: int, raw: Any, limit: int) -> ResetResult:
        """The result of a `reset`, from its raw reply."""
        try:
            start = checks.beginning(raw, self.spec, self.limits)
        except EnvFault as fault:
            self.fail(slot, fault)
            return ResetResult("", {"spade": self._notes(slot, fault)})
        self._limits[slot] = limit
        self._room = min(self._room, limit)
        self.instructions[slot] = start.turns
        self.over[slot] = self._fresh[slot] = False
        info = start.info
        info["spade"] = self._notes(slot, None)
        return ResetResult(start.observation, info)

    def _counted(self, slot: int, turn: int) -> int:
        self.turns[slot] = turn
        self._room -= 1
        return turn

    def _credit(self, slot: int) -> float:
        turns = self.instructions[slot]
        return self.completed[slot] / len(turns) if turns else 0.0

    def _notes(self, slot: int, fault: EnvFault | None) -> dict[str, Any]:
        notes: dict[str, Any] = {
            "turn": self.turns[slot],
            "solved": False,
            "fault": None if fault is None else fault_notes(fault),
        }
        if not self._is_game:
            notes["credit"] = self._credit(slot)
            notes["tools"] = deepcopy(self._tools)
        return notes

    def _faulted(self, slot: int, fault: EnvFault, action: Any) -> StepResult:
        self.fail(slot, fault)
        spade = {"turn": self.turns[slot], "solved": False, "fault": fault_notes(fault)}
        if not self._is_game:
            spade["credit"] = self._credit(slot)
        spade["action"] = action
        return StepResult("", 0.0, False, True, {"spade": spade})

    def moved(self, slot: int, raw: Any, action: str) -> StepResult:
        """The result of a game's step, from its raw reply."""
        turn = self._counted(slot, self.turns[slot] + 1)
        try:
            step = checks.transition(raw, self.spec, self.limits)
        except EnvFault as fault:
            return self._faulted(slot, fault, action)
        terminated, info = step.terminated, step.info
        truncated = not terminated and (step.truncated or turn >= self._limits[slot])
        self.over[slot] = terminated or truncated
        solved = terminated and checks.wins(step.reward, self.spec)
        info["spade"] = {"turn": turn, "solved": solved, "fault": None, "action": action}
        return _result((step.observation, step.reward, terminated, truncated, info))

    def results(
        self, slots: Sequence[int], raws: Sequence[Any] | Columns, actions: list[str]
    ) -> list[StepResult]:
        """The results of a round of games, from their raw replies."""
        if not isinstance(raws, Columns):
            return list(map(self.moved, slots, raws, actions))
        found = self.moves(slots, raws, actions)
        return found.rows() if isinstance(found, Moves) else found

    def moves(
        self, slots: Sequence[int], raws: Sequence[Any] | Columns, actions: list[str]
    ) -> Moves | list[StepResult]:
        """The results of a round of games, by column where the replies are plainly right."""
        columns = raws if isinstance(raws, Columns) else checks.by_column(raws)
        steps = checks.transitions(columns, self.spec, self.limits) if columns else None
        if steps is None:
            rows = raws.rows() if isinstance(raws, Columns) else raws
            return list(map(self.moved, slots, rows, actions))
        observations, rewards, terminated, truncated, infos, paid, ended = steps
        if len(slots) == len(self.turns):
            # All slots, whatever their order: `slots` names none twice.
            self.turns = [turn + 1 for turn in self.turns]
        else:
            for slot in slots:
                self.turns[slot] += 1
        self._room -= 1
        if self._room <= 0:
            ended = True
        counted = self.turns
        # A copy: the results are the caller's, and the count goes on.
        turns = [*counted] if slots is self.all else [counted[slot] for slot in slots]
        solved = [False] * len(turns)
        if ended:
            ended = self._end(slots, turns, terminated, truncated)
            for place, end in enumerate(terminated):
                solved[place] = end and checks.wins(rewards[place], self.spec)
        return Moves(
            observations, rewards, terminated, truncated, turns, solved, actions, infos, paid, ended
        )

    def _end(
        self, slots: Sequence[int], turns: list[int], terminated: list[bool], truncated: list[bool]
    ) -> bool:
        """Note whose episodes end with a round; `terminated` wins over `truncated`.

        Returns:
            Whether there are some.
        """
        for place, slot in enumerate(slots):
            if terminated[place]:
                truncated[place] = False
            elif turns[place] >= self._limits[slot]:
                truncated[place] = True
            self.over[slot] = terminated[place] or truncated[place]
        left = [
            limit - turn
            for limit, turn, over in zip(self._limits, self.turns, self.over, strict=True)
            if not over
        ]
        self._room = min(left, default=0)
        return True in terminated or True in truncated

    def answered(self, slot: int, one: Round) -> StepResult:
        """The result of a message of tool calls, after all of them were run or answered."""
        turn = self._counted(slot, self.turns[slot] + 1)
        self.completed[slot] = one.completed
        if one.fault is not None:
            return self._faulted(slot, one.fault, one.actions)
        terminated = one.completed == len(self.instructions[slot])
        truncated = not terminated and turn >= self._limits[slot]
        self.over[slot] = terminated or truncated
        spade = {
            "turn": turn,
            "credit": self._credit(slot),
            "solved": terminated,
            "fault": None,
            "action": one.actions,
        }
        reward = 1.0 if terminated else 0.0
        return StepResult(one.observation(), reward, terminated, truncated, {"spade": spade})


def fault_notes(fault: EnvFault) -> dict[str, str]:
    """A fault as `info["spade"]["fault"]` gives it."""
    return {"kind": fault.kind, "code": fault.code, "message": str(fault)}
