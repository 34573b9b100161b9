"""Scripted play of mixed quality: what the warm start shows of how the world is played.

Told the rule the player mostly answers right; otherwise it answers with any option on show, but for
the few times that its caller lets it know. So the format, valid options and the use of hints can be
learned from it, and of what an operation's word means no more than an inkling. Right answers come
from the environment's own `solution()`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from spade_runtime.messages import with_hint


class Session(Protocol):
    """The part of `spade_runtime.sandbox.EnvSession` that a player needs."""

    def reset(self, seeds: Sequence[int]) -> Sequence[Any]:
        """Begin an episode in each instance."""
        ...

    def step(self, messages: Sequence[Any], *, slots: Sequence[int] | None = None) -> Sequence[Any]:
        """Take one message in each of the slots."""
        ...

    def solution(self) -> Sequence[list[Any] | None]:
        """Return each instance's winning actions."""
        ...


@dataclass(frozen=True, slots=True)
class Play:
    """One scripted episode.

    Attributes:
        messages: the conversation, the player's replies as `assistant`.
        tools: tool schemas of the environment, without the function wrapper.
        hinted: whether the first observation held the hint.
        solved: whether the last reply solved the task.
    """

    messages: list[dict[str, str]]
    tools: list[dict[str, Any]]
    hinted: bool
    solved: bool


def options(observation: str) -> list[str]:
    """Return the options that an observation lists after its last colon.

    >>> options("The mill ebb 3. Pick: 4 1 7")
    ['4', '1', '7']
    """
    listing = observation.partition("\n\nHint:")[0].rpartition(":")[2]
    return listing.split()


def tool_message(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a tool call as the text that a model writes."""
    call = json.dumps({"name": name, "arguments": dict(arguments)})
    return f"<tool_call>{call}</tool_call>"


def scripted_plays(
    session: Session,
    seeds: Sequence[int],
    rng: random.Random,
    *,
    hint: str | None = None,
    right: float = 0.0,
    max_turns: int = 8,
) -> list[Play]:
    """Play one episode a seed.

    Args:
        session: an environment with as many instances as seeds.
        seeds: of the episodes.
        rng: of the player.
        hint: the hint to show, or None for play without.
        right: how often the player gives the right answer rather than any option on show.
        max_turns: longest episode.
    """
    starts = session.reset(seeds)
    solutions = session.solution()
    players = [
        _Player(start, solution or [], rng, hint, right)
        for start, solution in zip(starts, solutions, strict=True)
    ]
    for _ in range(max_turns):
        open_slots = [slot for slot, player in enumerate(players) if not player.over]
        if not open_slots:
            break
        replies = [players[slot].reply() for slot in open_slots]
        results = session.step(replies, slots=open_slots)
        for slot, result in zip(open_slots, results, strict=True):
            players[slot].hear(result)
    return [player.finished() for player in players]


class _Player:
    """One episode's player."""

    def __init__(
        self, start: Any, solution: list[Any], rng: random.Random, hint: str | None, right: float
    ) -> None:
        self.rng = rng
        self.solution = solution
        self.right = right
        self.hinted = hint is not None
        info = start.info.get("spade", {})
        self.tools = [tool.get("function", tool) for tool in info.get("tools") or ()]
        text = with_hint(start.observation, hint)
        self.messages = [{"role": "user", "content": text}]
        self.listed = options(start.observation)
        self.tried: set[str] = set()
        self.turn = 0
        self.over = False
        self.solved = False

    def reply(self) -> str:
        """Return the next reply and remember it."""
        knows = self.turn < len(self.solution) and self.rng.random() < self.right
        text = self._right() if knows else self._any()
        self.messages.append({"role": "assistant", "content": text})
        return text

    def hear(self, result: Any) -> None:
        """Take in what came back."""
        self.over = result.terminated or result.truncated
        self.solved = result.terminated and result.reward == 1.0
        if self.over:
            return
        role = "tool" if self.tools else "user"
        self.messages.append({"role": role, "content": result.observation})
        listed = options(result.observation) if ":" in result.observation else []
        if listed:
            self.listed, self.tried = listed, set()
        if listed or not self.tools:
            self.turn += 1

    def finished(self) -> Play:
        """Return the episode."""
        return Play(self.messages, self.tools, self.hinted, self.solved)

    def _right(self) -> str:
        if not self.tools:
            return f" {self.solution[self.turn]}"
        call = self.solution[self.turn][0]
        return tool_message(call["name"], call["arguments"])

    def _any(self) -> str:
        fresh = [item for item in self.listed if item not in self.tried] or self.listed
        choice = self.rng.choice(fresh)
        self.tried.add(choice)
        if not self.tools:
            return f" {choice}"
        schema = self.tools[0]
        name, argument = schema["name"], next(iter(schema["parameters"]["properties"]))
        kind = schema["parameters"]["properties"][argument].get("type")
        return tool_message(name, {argument: int(choice) if kind == "integer" else choice})
