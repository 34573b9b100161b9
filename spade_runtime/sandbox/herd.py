"""Several children of one class behind the face of one: `isolation="instance"`.

Each slot has a child of its own, so that an instance which hangs or breaks something takes no
other with it. What a lost child's slot gives is its `EnvFault`, as a value among the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spade_runtime.errors import EnvFault
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.wire import Inspection, LoadReply


class Herd:
    """One child for each slot.

    Args:
        children: fresh children of the same source.
        spawn: gives another child, already loaded, in the place of a lost one at its next reset.

    Attributes:
        instances: how many slots there are.
        fault: always None: a fault belongs to a slot, and is given as its value.
    """

    fault = None

    def __init__(
        self, children: Sequence[RawChild], spawn: Callable[[], RawChild] | None = None
    ) -> None:
        self._children = list(children)
        self._spawn = spawn
        self.instances = len(self._children)
        self.limits = self._children[0].limits
        self.isolation = self._children[0].isolation

    def inspect(self) -> Inspection:
        """Have the static gates run on the source, which is the same for all children."""
        return self._children[0].inspect()

    def load(self) -> LoadReply:
        """Load the module in every child; the first that raised speaks for all."""
        replies = [child.load() for child in self._children]
        return next((reply for reply in replies if reply.raised is not None), replies[0])

    def reset(self, slots: Sequence[int], seeds: Sequence[int]) -> list[Any]:
        """As `RawChild.reset`; a lost child gets a successor, or gives its `EnvFault`."""
        found: list[Any] = []
        for slot, seed in zip(slots, seeds, strict=True):
            try:
                if self._children[slot].fault is not None and self._spawn is not None:
                    self._children[slot] = self._spawn()
                found += self._children[slot].reset([0], [seed])
            except EnvFault as fault:
                found.append(fault)
        return found

    def step(self, slots: Sequence[int], actions: Sequence[str]) -> list[Any]:
        """As `RawChild.step`, with an `EnvFault` where a child is lost."""
        return self._each(slots, actions, lambda child, action: child.step([0], [action]))

    moves = step

    def tool(self, slots: Sequence[int], calls: Sequence[tuple[str, bytes, int]]) -> list[Any]:
        """As `RawChild.tool`, with an `EnvFault` where a child is lost."""
        return self._each(slots, calls, lambda child, call: child.tool([0], [call]))

    def criteria(self, slots: Sequence[int], turns: Sequence[int]) -> list[Any]:
        """As `RawChild.criteria`, with an `EnvFault` where a child is lost."""
        return self._each(slots, turns, lambda child, turn: child.criteria([0], [turn]))

    def solution(self, slots: Sequence[int]) -> list[Any]:
        """As `RawChild.solution`, with an `EnvFault` where a child is lost."""
        return self._each(slots, slots, lambda child, _: child.solution([0]))

    def close_instances(self, slots: Sequence[int]) -> list[Any]:
        """As `RawChild.close_instances`, with an `EnvFault` where a child is lost."""
        return self._each(slots, slots, lambda child, _: child.close_instances([0]))

    def kill(self) -> None:
        """End all children."""
        for child in self._children:
            child.kill()

    @property
    def cpu_seconds(self) -> float:
        """Processor time of all children together."""
        return sum(child.cpu_seconds for child in self._children)

    def _each(
        self,
        slots: Sequence[int],
        values: Sequence[Any],
        call: Callable[[RawChild, Any], list[Any]],
    ) -> list[Any]:
        found = []
        for slot, value in zip(slots, values, strict=True):
            try:
                found += call(self._children[slot], value)
            except EnvFault as fault:
                found.append(fault)
        return found
