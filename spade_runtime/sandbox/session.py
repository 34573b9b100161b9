"""`EnvSession`: the parent's half of an episode, for K instances of one class.

The child claims; here it is decided what an action is, when an episode ends, what it pays, and
whether it was solved (contract.md section 1). A round of a group is one message to the child.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from spade_runtime import checks
from spade_runtime.arguments import ArgumentChecker
from spade_runtime.authoring import boxed
from spade_runtime.errors import EnvFault, EnvViolation, EpisodeOver, HostError, UsageError
from spade_runtime.messages import message_text, visible
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.herd import Herd
from spade_runtime.sandbox.toolrounds import (
    CALLS_MAX,
    Round,
    play_rounds,
    replayed,
    understood,
)
from spade_runtime.spec import EnvSpec, ToolSpec

SEED_END = 1 << 31
Child = RawChild | Herd


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


class EnvSession:
    """K instances of one environment class, played side by side.

    Every call takes and gives one item for each slot, in the order of `slots` (all of them by
    default). A fault of the environment inside `reset` or `step` is data: the result is truncated,
    its observation empty, and `info["spade"]["fault"]` says what happened; where the child died,
    all its unfinished slots get the fault, and the next `reset` starts a fresh child.

    Args:
        child: a child in which the class is loaded.
        spec: its manifest.
        reopen: gives another loaded child, for a `reset` after the child is gone.

    Attributes:
        spec: the manifest.
        instances: number of slots.
        tools: schemas of a tool-use environment, empty for a game.
        faults: the fault that ended each slot's episode, None where there was none.
    """

    def __init__(
        self, child: Child, spec: EnvSpec, *, reopen: Callable[[], Child] | None = None
    ) -> None:
        self.spec = spec
        self.instances = child.instances
        self.isolation = child.isolation
        self.tools: list[ToolSpec] = list(spec.tools)
        self.faults: list[EnvFault | None] = [None] * child.instances
        self._child = child
        self._reopen = reopen
        self._closed = False
        self._plays: list[Play | None] = [None] * child.instances
        self._is_game = spec.kind == "game"
        self._answers = spec.dialect == "published"
        try:
            self._checker = ArgumentChecker(self.tools)
        except ValueError as problem:
            raise EnvViolation(f"a tool's schema can't be used: {problem}", code="SPD501") from None
        self._tools_info = [
            {"type": "function", "function": tool.model_dump()} for tool in self.tools
        ]

    def reset(
        self,
        seeds: Sequence[int],
        *,
        slots: Sequence[int] | None = None,
        max_turns: int | None = None,
    ) -> list[ResetResult]:
        """Begin an episode in each slot, on a fresh instance.

        Args:
            seeds: integers in [0, 2^31), one for each slot.
            slots: which instances.
            max_turns: the run's limit in agent messages; the class's own holds where it is lower.

        Raises:
            UsageError: wrong number of seeds, a seed out of range, or an unknown slot.
            HostError: the machine is at fault.
        """
        chosen = self._slots(slots, seeds, "seeds")
        for seed in seeds:
            if type(seed) is not int or not 0 <= seed < SEED_END:
                raise UsageError(f"a seed is an integer from 0 to {SEED_END - 1}, not {seed!r}")
        if max_turns is not None and max_turns < 1:
            raise UsageError(f"max_turns is at least 1, not {max_turns}")
        limit = min(self.spec.max_turns, max_turns or self.spec.max_turns)
        for slot in chosen:
            self.faults[slot] = None
            self._plays[slot] = None
        replies = self._ask(chosen, lambda child: child.reset(chosen, list(seeds)), fresh=True)
        return [self._begun(slot, raw, limit) for slot, raw in zip(chosen, replies, strict=True)]

    def step(
        self, messages: Sequence[Any], *, slots: Sequence[int] | None = None
    ) -> list[StepResult]:
        """Take the agent's message in each slot.

        Args:
            messages: text, an OpenAI message, or a list of tool calls, one for each slot.
            slots: which instances.

        Raises:
            UsageError: a message of another type, text that does not encode, or too few messages;
                nothing has been played then.
            EpisodeOver: a slot's episode has ended, or none was begun.
            HostError: the machine is at fault.
        """
        chosen = self._playing(slots, messages, "messages")
        if self._is_game:
            return self._step_games(chosen, [self._action(message) for message in messages])
        return self._step_tools(
            chosen,
            [understood(message, self._checker, answers=self._answers) for message in messages],
        )

    def act(
        self, actions: Sequence[Any], *, slots: Sequence[int] | None = None
    ) -> list[StepResult]:
        """Take a raw action in each slot, of a `solution()` or as an episode recorded it.

        Args:
            actions: a game's action text, or a list of calls.
            slots: which instances.

        Raises:
            UsageError: as `step`.
            EpisodeOver: as `step`.
        """
        chosen = self._playing(slots, actions, "actions")
        if self._is_game:
            for action in actions:
                if not isinstance(action, str):
                    raise UsageError(f"an action of a game is text, not {action!r:.80}")
            return self._step_games(chosen, [message_text(action) for action in actions])
        return self._step_tools(
            chosen,
            [replayed(action, self._checker, answers=self._answers) for action in actions],
        )

    def solution(self, *, slots: Sequence[int] | None = None) -> list[list[Any] | None]:
        """The reference solution of each slot's present state, as actions for `act`.

        A game gives texts; a tool-use environment gives, for each message to send, its calls. None
        where there is no solution; one that raises is a fault, recorded in `faults`, and ends the
        slot's episode.
        """
        chosen = self._playing(slots, None, "slots")
        found: list[list[Any] | None] = []
        for slot, raw in zip(chosen, self._ask(chosen, lambda c: c.solution(chosen)), strict=True):
            try:
                steps = checks.solution(raw, self.spec)
            except EnvFault as fault:
                self._fail(slot, fault)
                steps = None
            found.append(steps if self._is_game or steps is None else _messages(steps))
        return found

    def running(self, slot: int) -> bool:
        """Whether a slot's episode has begun and not ended."""
        play = self._plays[slot]
        return play is not None and not play.over

    @property
    def cpu_seconds(self) -> float:
        """Processor time that the child has used."""
        return self._child.cpu_seconds

    def close(self) -> None:
        """End the child; may be called twice."""
        self._closed = True
        self._child.kill()

    def __enter__(self) -> EnvSession:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    # --- games -------------------------------------------------------------------------------

    def _action(self, message: Any) -> str:
        """The action of a message, in the form that the class's dialect parses."""
        text = visible(message_text(message))
        found = boxed(text)
        if found is None:
            return text.strip()
        return found if self.spec.dialect == "contract" else f"\\boxed{{{found}}}"

    def _step_games(self, chosen: list[int], actions: list[str]) -> list[StepResult]:
        replies = self._ask(chosen, lambda child: child.step(chosen, actions))
        return [
            self._moved(slot, raw, action)
            for slot, raw, action in zip(chosen, replies, actions, strict=True)
        ]

    def _moved(self, slot: int, raw: Any, action: str) -> StepResult:
        play = self._play(slot)
        play.turn += 1
        try:
            step = checks.transition(raw, self.spec, self._child.limits)
        except EnvFault as fault:
            return self._faulted(slot, fault, action)
        truncated = not step.terminated and (step.truncated or play.turn >= play.limit)
        play.over = step.terminated or truncated
        info = step.info
        info["spade"] = {
            "turn": play.turn,
            "solved": checks.is_solved(step, self.spec),
            "fault": None,
            "action": action,
        }
        return StepResult(step.observation, step.reward, step.terminated, truncated, info)

    # --- tool use ----------------------------------------------------------------------------

    def _step_tools(self, chosen: list[int], rounds: list[Round]) -> list[StepResult]:
        for slot, one in zip(chosen, rounds, strict=True):
            play = self._play(slot)
            one.begin(slot, play.turns, play.completed)
        play_rounds(rounds, self._run_tools)
        return [self._answered(slot, one) for slot, one in zip(chosen, rounds, strict=True)]

    def _run_tools(self, slots: list[int], calls: list[tuple[str, bytes, int]]) -> list[Any]:
        return [
            self._checked_tool(raw)
            for raw in self._ask(slots, lambda child: child.tool(slots, calls))
        ]

    def _checked_tool(self, raw: Any) -> tuple[str, bool] | EnvFault:
        try:
            return checks.tool_result(raw, self._child.limits)
        except EnvFault as fault:
            return fault

    def _answered(self, slot: int, one: Round) -> StepResult:
        play = self._play(slot)
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

    # --- both --------------------------------------------------------------------------------

    def _begun(self, slot: int, raw: Any, limit: int) -> ResetResult:
        try:
            start = checks.beginning(raw, self.spec, self._child.limits)
        except EnvFault as fault:
            self._fail(slot, fault)
            return ResetResult("", {"spade": self._notes(slot, fault)})
        self._plays[slot] = Play(limit, start.turns)
        info = start.info
        info["spade"] = self._notes(slot, None)
        return ResetResult(start.observation, info)

    def _notes(self, slot: int, fault: EnvFault | None) -> dict[str, Any]:
        play = self._plays[slot]
        notes: dict[str, Any] = {
            "turn": play.turn if play else 0,
            "solved": False,
            "fault": None if fault is None else fault_notes(fault),
        }
        if not self._is_game:
            notes["credit"] = play.credit if play else 0.0
            notes["tools"] = deepcopy(self._tools_info)
        return notes

    def _faulted(self, slot: int, fault: EnvFault, action: Any) -> StepResult:
        self._fail(slot, fault)
        play = self._play(slot)
        spade: dict[str, Any] = {"turn": play.turn, "solved": False, "fault": fault_notes(fault)}
        if not self._is_game:
            spade["credit"] = play.credit
        spade["action"] = action
        return StepResult("", 0.0, False, True, {"spade": spade})

    def _fail(self, slot: int, fault: EnvFault) -> None:
        self.faults[slot] = fault
        play = self._plays[slot]
        if play is not None:
            play.over = True

    def _play(self, slot: int) -> Play:
        play = self._plays[slot]
        assert play is not None
        return play

    def _ask(
        self, chosen: list[int], call: Callable[[Child], list[Any]], *, fresh: bool = False
    ) -> list[Any]:
        """One request for several slots; a child that is lost gives its fault to each of them."""
        try:
            if fresh:
                self._revive()
            return list(call(self._child))
        except EnvFault as fault:
            for slot, play in enumerate(self._plays):
                if play is not None and not play.over and slot not in chosen:
                    self._fail(slot, fault)
            return [fault] * len(chosen)

    def _revive(self) -> None:
        """Start a fresh child in the place of a lost one; instances that still ran are over."""
        if self._child.fault is None:
            return
        if self._reopen is None:
            if isinstance(self._child.fault, HostError):
                raise self._child.fault
            raise UsageError("the child is gone; open the environment again") from self._child.fault
        for play in self._plays:
            if play is not None:
                play.over = True
        self._child = self._reopen()

    def _slots(
        self, slots: Sequence[int] | None, values: Sequence[Any] | None, what: str
    ) -> list[int]:
        if self._closed:
            raise UsageError("this session is closed; open the environment again")
        chosen = list(range(self.instances)) if slots is None else [int(slot) for slot in slots]
        if any(not 0 <= slot < self.instances for slot in chosen):
            raise UsageError(f"slots are 0 to {self.instances - 1}, not {chosen}")
        if len(set(chosen)) != len(chosen):
            raise UsageError(f"a slot stands twice in {chosen}")
        if values is not None and (isinstance(values, str) or len(values) != len(chosen)):
            raise UsageError(
                f"{len(chosen)} {what} are needed, one for each slot; "
                f"{'one text' if isinstance(values, str) else len(values)} came"
            )
        return chosen

    def _playing(
        self, slots: Sequence[int] | None, values: Sequence[Any] | None, what: str
    ) -> list[int]:
        chosen = self._slots(slots, values, what)
        for slot in chosen:
            if not self.running(slot):
                why = "has ended" if self._plays[slot] or self.faults[slot] else "was not begun"
                raise EpisodeOver(f"the episode in slot {slot} {why}; call reset first")
        return chosen


def fault_notes(fault: EnvFault) -> dict[str, str]:
    """A fault as `info["spade"]["fault"]` gives it."""
    return {"kind": fault.kind, "code": fault.code, "message": str(fault)}


def _messages(turns: list[list[tuple[str, Any]]]) -> list[list[dict[str, Any]]]:
    """The calls of each user turn, in messages of a size that the contract runs."""
    return [
        [
            {"name": name, "arguments": arguments}
            for name, arguments in calls[start : start + CALLS_MAX]
        ]
        for calls in turns
        for start in range(0, len(calls), CALLS_MAX)
    ]
