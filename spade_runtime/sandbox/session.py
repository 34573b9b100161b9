"""`EnvSession`: the parent's half of an episode, for K instances of one class.

The child claims; here it is decided what an action is, when an episode ends, what it pays, and
whether it was solved (contract.md section 1). A round of a group is one message to the child.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeVar

from spade_runtime import checks
from spade_runtime.arguments import ArgumentChecker
from spade_runtime.errors import EnvFault, EnvViolation, EpisodeOver, HostError, UsageError
from spade_runtime.messages import game_actions, message_text
from spade_runtime.sandbox.book import Book, Moves, ResetResult, StepResult
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.herd import Herd
from spade_runtime.sandbox.toolrounds import (
    CALLS_MAX,
    Round,
    play_rounds,
    replayed,
    understood,
)
from spade_runtime.seeds import SEED_END, checked_seed
from spade_runtime.spec import EnvSpec, ToolSpec

__all__ = ["SEED_END", "Ask", "EnvSession", "Moves", "ResetResult", "StepResult", "T", "Talk"]

Child = RawChild | Herd


class Ask(NamedTuple):
    """One request that a call needs: what of `spade_runtime.sandbox.orders`, for which slots.

    `then` is another one that may be sent along; the answer is a list of both replies then, the
    second None where it has to be asked again.
    """

    phase: str
    slots: list[int]
    values: Sequence[Any]
    then: Ask | None = None


T = TypeVar("T")
Talk = Generator[Ask, list[Any], T]
"""A call of a session that is not run yet: it yields requests and wants their replies.

`spade_runtime.sandbox.together` runs the talks of several sessions side by side.
"""


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
        is_game: a game, no tool-use environment.
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
        self._child = child
        self._reopen = reopen
        self._closed = False
        self._book = Book(spec, child.limits, child.instances)
        self.faults = self._book.faults
        self.is_game = spec.kind == "game"
        self._answers = spec.dialect == "published"
        try:
            self._checker = ArgumentChecker(self.tools)
        except ValueError as problem:
            raise EnvViolation(f"a tool's schema can't be used: {problem}", code="SPD501") from None

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
        return self.run(self.resetting(seeds, slots=slots, max_turns=max_turns))

    def resetting(
        self,
        seeds: Sequence[int],
        *,
        slots: Sequence[int] | None = None,
        max_turns: int | None = None,
    ) -> Talk[list[ResetResult]]:
        """`reset` as a talk."""
        chosen = self._slots(slots, seeds, "seeds")
        numbers = list(map(checked_seed, seeds))
        if max_turns is not None and (type(max_turns) is not int or max_turns < 1):
            raise UsageError(f"max_turns is a whole number of at least 1, not {max_turns!r:.60}")
        limit = min(self.spec.max_turns, max_turns or self.spec.max_turns)
        for slot in chosen:
            self._book.forget(slot)
        replies = yield Ask("reset", chosen, numbers)
        return [
            self._book.begun(slot, raw, limit) for slot, raw in zip(chosen, replies, strict=True)
        ]

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
        if not self.is_game:
            return self.run(self.stepping(messages, slots=slots))
        # What `stepping` does, without a generator: one message takes a tenth less time.
        chosen = self._playing(slots, messages, "messages")
        actions = game_actions(messages, self.spec.dialect)
        replies = self.ask(Ask("moves", chosen, actions))
        return self._book.results(chosen, replies, actions)

    def stepping(
        self, messages: Sequence[Any], *, slots: Sequence[int] | None = None
    ) -> Talk[list[StepResult]]:
        """`step` as a talk."""
        chosen = self._playing(slots, messages, "messages")
        if self.is_game:
            actions = game_actions(messages, self.spec.dialect)
            replies = yield Ask("moves", chosen, actions)
            return self._book.results(chosen, replies, actions)
        return (yield from self._step_tools(chosen, self._understood(messages)))

    def moves(
        self, messages: Sequence[Any], *, slots: Sequence[int] | None = None
    ) -> Moves | list[StepResult]:
        """`step`, whose results may come as columns: for those who read these."""
        if not self.is_game:
            return self.run(self.stepping(messages, slots=slots))
        # Without a generator, as in `step`.
        chosen = self._playing(slots, messages, "messages")
        actions = game_actions(messages, self.spec.dialect)
        return self._book.moves(chosen, self.ask(Ask("moves", chosen, actions)), actions)

    def moving(
        self, messages: Sequence[Any], *, slots: Sequence[int] | None = None
    ) -> Talk[Moves | list[StepResult]]:
        """`moves` as a talk; what can't be played is refused here, before it begins."""
        chosen = self._playing(slots, messages, "messages")
        if not self.is_game:
            return self._step_tools(chosen, self._understood(messages))
        return self._moving(chosen, game_actions(messages, self.spec.dialect))

    def _moving(
        self, chosen: list[int], actions: list[str]
    ) -> Generator[Ask, list[Any], Moves | list[StepResult]]:
        replies = yield Ask("moves", chosen, actions)
        return self._book.moves(chosen, replies, actions)

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
        return self.run(self.acting(actions, slots=slots))

    def acting(
        self, actions: Sequence[Any], *, slots: Sequence[int] | None = None
    ) -> Talk[list[StepResult]]:
        """`act` as a talk."""
        chosen = self._playing(slots, actions, "actions")
        if not self.is_game:
            rounds = [replayed(one, self._checker, answers=self._answers) for one in actions]
            return (yield from self._step_tools(chosen, rounds))
        for action in actions:
            if not isinstance(action, str):
                raise UsageError(f"an action of a game is text, not {action!r:.80}")
        texts = [message_text(one) for one in actions]
        replies = yield Ask("moves", chosen, texts)
        return self._book.results(chosen, replies, texts)

    def solution(self, *, slots: Sequence[int] | None = None) -> list[list[Any] | None]:
        """The reference solution of each slot's present state, as actions for `act`.

        A game gives texts; a tool-use environment gives, for each message to send, its calls. None
        where there is no solution; one that raises is a fault, recorded in `faults`, and ends the
        slot's episode.
        """
        chosen = self._playing(slots, None, "slots")
        found: list[list[Any] | None] = []
        for slot, raw in zip(chosen, self.ask(Ask("solution", chosen, ())), strict=True):
            try:
                steps = checks.solution(raw, self.spec)
            except EnvFault as fault:
                self._book.fail(slot, fault)
                steps = None
            found.append(steps if self.is_game or steps is None else _messages(steps))
        return found

    def running(self, slot: int) -> bool:
        """Whether a slot's episode has begun and not ended."""
        return not self._book.over[slot]

    @property
    def loss(self) -> EnvFault | None:
        """The fault that took the child, until a `reset` starts another."""
        fault = self._child.fault
        return fault if isinstance(fault, EnvFault) else None

    def drop(self, slot: int, fault: EnvFault) -> None:
        """End a slot's episode by a fault that was found outside of this session."""
        self._book.fail(slot, fault)

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

    def _understood(self, messages: Sequence[Any]) -> list[Round]:
        return [understood(one, self._checker, answers=self._answers) for one in messages]

    # --- tool use ----------------------------------------------------------------------------

    def _step_tools(self, chosen: list[int], rounds: list[Round]) -> Talk[list[StepResult]]:
        for slot, one in zip(chosen, rounds, strict=True):
            one.begin(slot, self._book.instructions[slot], self._book.completed[slot])
        running = play_rounds(rounds)
        calls = next(running, None)
        while calls is not None:
            replies = yield Ask("tool", *calls)
            try:
                calls = running.send([self._checked_tool(raw) for raw in replies])
            except StopIteration:
                calls = None
        return [self._book.answered(slot, one) for slot, one in zip(chosen, rounds, strict=True)]

    def _checked_tool(self, raw: Any) -> tuple[str, bool] | EnvFault:
        try:
            return checks.tool_result(raw, self._child.limits)
        except EnvFault as fault:
            return fault

    # --- both --------------------------------------------------------------------------------

    def run(self, talk: Talk[T]) -> T:
        """Run a talk of this session."""
        try:
            ask = next(talk)
            while True:
                ask = talk.send(self.ask(ask))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def ask(self, ask: Ask) -> list[Any]:
        """Send one request and wait; a child that is lost gives its fault to every slot."""
        try:
            child = self.child_for(ask)
            if ask.phase == "solution":
                return child.solution(ask.slots)
            replies: list[Any] = getattr(child, ask.phase)(ask.slots, ask.values)
            return replies
        except EnvFault as fault:
            return self.lost(ask, fault)

    def child_for(self, ask: Ask) -> Child:
        """The child to send a request to; a `reset` gets a fresh one where it was lost.

        Raises:
            EnvFault: the class does not load again.
            HostError: the machine is at fault.
        """
        if ask.phase == "reset":
            self._revive()
        return self._child

    def lost(self, ask: Ask, fault: EnvFault) -> list[Any]:
        """Note that the child is gone, and give the replies to the request that it left open."""
        for slot, over in enumerate(self._book.over):
            if not over and slot not in ask.slots:
                self._book.fail(slot, fault)
        return [fault] * len(ask.slots)

    def _revive(self) -> None:
        """Start a fresh child in the place of a lost one; instances that still ran are over."""
        if self._child.fault is None:
            return
        if self._reopen is None:
            if isinstance(self._child.fault, HostError):
                raise self._child.fault
            raise UsageError("the child is gone; open the environment again") from self._child.fault
        self._book.end_all()
        self._child = self._reopen()

    def _slots(
        self, slots: Sequence[int] | None, values: Sequence[Any] | None, what: str
    ) -> list[int]:
        if self._closed:
            raise UsageError("this session is closed; open the environment again")
        if slots is None:
            chosen = self._book.all
        else:
            chosen = list(map(int, slots))
            if chosen and (min(chosen) < 0 or max(chosen) >= self.instances):
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
        over = self._book.over
        if True in over:
            for slot in chosen:
                if over[slot]:
                    why = self._book.why_over(slot)
                    raise EpisodeOver(f"the episode in slot {slot} {why}; call reset first")
        return chosen


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
