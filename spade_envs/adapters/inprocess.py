"""Environments of installed packages, played in this process under the contract's rules.

What stands in an installed package is trusted as the package is, and may need what the sandbox does
not have. A `Task` says what one episode does; `InProcess` answers in the place of a child, so that
messages, calls, turns, pay, wins and faults are the session's, as for any other environment.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, cast

from spade_envs.env import SpadeEnv
from spade_runtime.sandbox.session import EnvSession
from spade_runtime.sandbox.wire import Raised, RawCriterion, RawReset, RawSolution, RawStep, RawTool
from spade_runtime.spec import EnvSpec, Kind, Limits, ToolSpec

# An installed data set may show more than generated code may: BFCL's long contexts do.
LIMITS = Limits(observation_chars=1_000_000, info_bytes=1_000_000)


class Task:
    """One episode of a trusted environment; a game has `move`, a tool desk `call` and `done`."""

    def begin(self) -> tuple[str, dict[str, Any]]:
        """The first observation and its info."""
        raise NotImplementedError

    def move(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take an action of a game."""
        raise NotImplementedError

    def instructions(self) -> list[str]:
        """The user's instructions, for a tool desk."""
        raise NotImplementedError

    def call(self, name: str, arguments: dict[str, Any], turn: int) -> str:
        """Run one tool in a user turn."""
        raise NotImplementedError

    def done(self, turn: int) -> bool:
        """Whether a user turn is done now."""
        raise NotImplementedError

    def solution(self) -> list[Any] | None:
        """Winning actions, or for each user turn its calls as `(name, arguments)`."""
        return None

    def close(self) -> None:
        """Let go of what the episode holds."""


class InProcess:
    """Answers what `EnvSession` asks of a child; what a task raises is a fault, as in a child.

    Args:
        make: gives the task of a seed.
        kind: `game` or `tool_use`.
        instances: number of slots.
    """

    fault = None
    cpu_seconds = 0.0
    isolation = "none (in this process)"
    limits = LIMITS

    def __init__(self, make: Callable[[int], Task], kind: Kind, instances: int = 1) -> None:
        self.instances = instances
        self._make, self._kind = make, kind
        self._tasks: dict[int, Task] = {}

    def reset(self, slots: Sequence[int], seeds: Sequence[int]) -> list[Any]:
        """Begin the task of a seed in each slot."""
        return [self._answer("reset", self._begin, *one) for one in zip(slots, seeds, strict=True)]

    def step(self, slots: Sequence[int], actions: Sequence[str]) -> list[Any]:
        """Take an action in each slot."""
        return [self._answer("step", self._move, *one) for one in zip(slots, actions, strict=True)]

    moves = step

    def tool(self, slots: Sequence[int], calls: Sequence[tuple[str, bytes, int]]) -> list[Any]:
        """Run a call in each slot, and ask whether the user's turn is done after it."""
        return [self._answer("tool", self._call, *one) for one in zip(slots, calls, strict=True)]

    def criteria(self, slots: Sequence[int], turns: Sequence[int]) -> list[Any]:
        """Whether a user turn is done now, in each slot."""
        return [
            self._answer("criterion", lambda s, t: RawCriterion(self._tasks[s].done(t)), *one)
            for one in zip(slots, turns, strict=True)
        ]

    def solution(self, slots: Sequence[int]) -> list[Any]:
        """The reference solution of each slot."""
        return [self._answer("solution", self._solve, slot) for slot in slots]

    def kill(self) -> None:
        """Close the tasks."""
        while self._tasks:
            self._tasks.popitem()[1].close()

    def _begin(self, slot: int, seed: int) -> RawReset:
        if slot in self._tasks:
            self._tasks.pop(slot).close()
        task = self._tasks[slot] = self._make(seed)
        observation, info = task.begin()
        turns = None if self._kind == "game" else task.instructions()
        return RawReset(observation, _encoded(info), turns)

    def _move(self, slot: int, action: str) -> RawStep:
        observation, reward, terminated, truncated, info = self._tasks[slot].move(action)
        return RawStep(observation, reward, terminated, truncated, _encoded(info))

    def _call(self, slot: int, call: tuple[str, bytes, int]) -> RawTool:
        name, arguments, turn = call
        task = self._tasks[slot]
        return RawTool(task.call(name, json.loads(arguments), turn), task.done(turn))

    def _solve(self, slot: int) -> RawSolution:
        found = self._tasks[slot].solution()
        if found is None or self._kind == "game":
            return RawSolution(actions=found)
        turns = [[(name, _encoded(given)) for name, given in calls] for calls in found]
        return RawSolution(calls=turns)

    @staticmethod
    def _answer(phase: str, run: Callable[..., Any], *values: Any) -> Any:
        try:
            return run(*values)
        except Exception as problem:  # recorded as the environment's fault, where all of them are
            return Raised(phase, type(problem).__name__, str(problem))


class InProcessEnv(SpadeEnv):
    """A trusted environment behind Gymnasium's interface; subclasses say which.

    `reset`, `step`, `info["spade"]`, hints and limits are `SpadeEnv`'s.
    """

    @abstractmethod
    def _open(self) -> EnvSession:
        """Give the session."""

    @property
    def session(self) -> EnvSession:
        """The session behind this environment, opened if it was not."""
        if self._session is None:
            self._session = self._open()
        return self._session


def open_session(
    make: Callable[[int], Task],
    *,
    name: str,
    kind: Kind,
    settings: Any,
    title: str,
    skill: str = "",
    max_turns: int = 1,
    tools: Sequence[ToolSpec] = (),
    dialect: Any = "contract",
) -> EnvSession:
    """A session of a trusted environment.

    Args:
        make: gives the task of a seed.
        name: the environment's id.
        kind: `game` or `tool_use`.
        settings: plain JSON that determines the tasks; its hash stands for a source's.
        title: what it is, in words.
        skill: its skill, where it has one.
        max_turns: limit in agent messages.
        tools: its tools.
        dialect: how actions reach `move` (contract.md section 1).
    """
    text = json.dumps([name, settings], sort_keys=True, ensure_ascii=False, default=str)
    spec = EnvSpec(
        id=name,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        kind=kind,
        dialect=dialect,
        title=title,
        skill=skill,
        max_turns=max_turns,
        tools=list(tools),
    )
    return EnvSession(cast(Any, InProcess(make, kind)), spec)


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=str).encode()
