"""What can be called in a child, by name; how a request gets there and back is `channel`'s."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from spade_runtime.sandbox import orders
from spade_runtime.sandbox.orders import Order
from spade_runtime.sandbox.wire import (
    Bad,
    Columns,
    Inspection,
    LoadReply,
    Raised,
    RawClosed,
    RawCriterion,
    RawReset,
    RawSolution,
    RawStep,
    RawTool,
    Reading,
)

if TYPE_CHECKING:
    from spade_runtime.spec import Limits


class Calls(ABC):
    """Each call is one request and its reply.

    Args:
        source: the module that the child runs.
        policy: read it by the static policy.
        limits: what it may use.
        read: gives what another child has made of the source.
    """

    def __init__(
        self, source: str, *, policy: bool, limits: Limits, read: Callable[[], Reading]
    ) -> None:
        self.limits = limits
        self._read = read
        self._reading: Reading | None = None
        self._source = source
        self._policy = policy

    def read(self) -> Reading:
        """Run the static gates here; a child that has done so runs no module."""
        order = orders.inspect(self.limits, self._source, policy=self._policy)
        reading: Reading = self.run(order)[0]
        return reading

    def inspect(self) -> Inspection:
        """Have the static gates run on the source: in another child, unless that was done before.

        Raises:
            EnvFault: that child is lost by the source's fault.
            HostError: the machine is at fault.
        """
        if self._reading is None:
            self._reading = self._read()
        return self._reading.inspection

    def load(self) -> LoadReply:
        """Run the module and find its class; inspects it first where that was not done."""
        self.inspect()
        assert self._reading is not None
        order = orders.load(self.limits, self._source, self._reading, policy=self._policy)
        reply: LoadReply = self.run(order)[0]
        return reply

    def reset(
        self, slots: Sequence[int], seeds: Sequence[int], *, fresh: bool = True
    ) -> list[RawReset | Raised | Bad]:
        """Make a fresh instance in each slot, seeded, and call its `reset`.

        With `fresh` off the instances that the slots hold are seeded and reset again.
        """
        return self.run(orders.reset(self.limits, slots, seeds, fresh=fresh))

    def step(self, slots: Sequence[int], actions: Sequence[str]) -> list[RawStep | Raised | Bad]:
        """Call `step` once for each slot named; one named several times takes several steps."""
        return self.run(orders.step(self.limits, slots, actions))

    def moves(
        self, slots: Sequence[int], actions: Sequence[str]
    ) -> list[RawStep | Raised | Bad] | Columns:
        """The same as `step`, by column where nothing was out of the ordinary."""
        return self.exchange(orders.step(self.limits, slots, actions))

    def tool(
        self, slots: Sequence[int], calls: Sequence[tuple[str, bytes, int]]
    ) -> list[RawTool | Raised]:
        """Run one declared tool in each slot, then ask whether the user's turn is done.

        Args:
            slots: one instance for each call.
            calls: name, arguments as JSON, and the user turn (from 0) to ask about.
        """
        return self.run(orders.tool(self.limits, slots, calls))

    def criteria(self, slots: Sequence[int], turns: Sequence[int]) -> list[RawCriterion | Raised]:
        """Ask whether a user turn (from 0) is done now, in each slot."""
        return self.run(orders.criteria(self.limits, slots, turns))

    def solution(self, slots: Sequence[int]) -> list[RawSolution | Raised]:
        """Ask for the reference solution of each slot's present state."""
        return self.run(orders.solution(self.limits, slots))

    def close_instances(self, slots: Sequence[int]) -> list[Raised | None]:
        """Call the class's `close`, where it has one, and forget the instances."""
        items: list[RawClosed | Raised] = self.run(orders.close(self.limits, slots))
        return [item if isinstance(item, Raised) else None for item in items]

    def run(self, order: Order) -> list[Any]:
        """Send a request and wait for its reply.

        Raises:
            EnvFault: the child is lost by its own fault.
            HostError: the machine is at fault.
        """
        found = self.exchange(order)
        return found.rows() if isinstance(found, Columns) else found

    @abstractmethod
    def exchange(self, order: Order) -> list[Any] | Columns:
        """As `run`; steps of games are left as columns where they came so."""
