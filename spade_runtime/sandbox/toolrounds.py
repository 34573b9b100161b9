"""One message of tool calls: read, checked, run in order, answered (contract.md section 1).

A group's messages advance together: each round sends the next call of every instance that has one
in a single request.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from typing import Any

from spade_runtime.arguments import ArgumentChecker
from spade_runtime.dialects import ANSWER
from spade_runtime.errors import EnvFault, UsageError
from spade_runtime.messages import (
    REMINDER,
    CallError,
    Item,
    ParsedCall,
    final_answer,
    parse_tool_calls,
)

CALLS_MAX = 16
TOO_MANY = f"not run: too many calls (at most {CALLS_MAX} in a message)"
NEW_INSTRUCTION = "not run: new instruction"
ALL_DONE = "All instructions are done."

Checked = ParsedCall | CallError
Calls = tuple[list[int], list[tuple[str, bytes, int]]]
Reply = tuple[str, bool] | EnvFault


class Round:
    """One agent message of one instance, on its way through the calls.

    Args:
        items: the checked calls, readable or not.

    Attributes:
        completed: user turns completed, after what has run so far.
        fault: the environment's fault, where a call brought one out.
        actions: the calls as recorded in `info["spade"]["action"]`; `act` takes them back.
    """

    def __init__(self, items: list[Checked]) -> None:
        self.items = items
        self.actions = [_action(item) for item in items]
        self.results: list[str] = []
        self.completed = 0
        self.fault: EnvFault | None = None
        self.slot = 0
        self._turns: list[str] = []
        self._revealed: str | None = None

    def begin(self, slot: int, turns: list[str], completed: int) -> None:
        """Bind the message to an instance and to the user turn that it stands in."""
        self.slot, self._turns, self.completed = slot, turns, completed

    def next_call(self) -> tuple[str, bytes, int] | None:
        """The next call to run, after answering those before it that can't be."""
        while self.fault is None and len(self.results) < len(self.items):
            place = len(self.results)
            item = self.items[place]
            if self._revealed is not None:
                self.results.append(NEW_INSTRUCTION)
            elif place >= CALLS_MAX:
                self.results.append(TOO_MANY)
            elif isinstance(item, CallError):
                self.results.append(f"Error: {item.message}")
            else:
                arguments = json.dumps(item.arguments, ensure_ascii=False, allow_nan=False)
                return item.name, arguments.encode(), self.completed
        return None

    def take(self, reply: Reply) -> None:
        """Take the result of the call that ran, and reveal the next instruction where it is due."""
        if isinstance(reply, EnvFault):
            self.fault = reply
            return
        text, done = reply
        self.results.append(text)
        if done:
            # An answer that the class takes ends the task, whatever turn it stands in.
            item = self.items[len(self.results) - 1]
            answered = isinstance(item, ParsedCall) and item.name == ANSWER
            self.completed = len(self._turns) if answered else self.completed + 1
            last = self.completed == len(self._turns)
            self._revealed = (
                ALL_DONE if last else f"Next instruction: {self._turns[self.completed]}"
            )

    def observation(self) -> str:
        """What the agent sees: the results in order, numbered where there are several."""
        if not self.items:
            return REMINDER
        if len(self.results) == 1:
            text = self.results[0]
        else:
            text = "\n".join(f"[{place}] {result}" for place, result in enumerate(self.results, 1))
        return text if self._revealed is None else f"{text}\n\n{self._revealed}"


def play_rounds(messages: list[Round]) -> Generator[Calls, list[Reply], None]:
    """Run the calls of several instances' messages, one call of each instance at a time.

    Args:
        messages: one for each instance.

    Yields:
        The calls of one request, by slot; it wants `(result, done)` or a fault for each sent back.
    """
    while True:
        waiting = [(one, call) for one in messages if (call := one.next_call()) is not None]
        if not waiting:
            return
        replies = yield [one.slot for one, _ in waiting], [call for _, call in waiting]
        for (one, _), reply in zip(waiting, replies, strict=True):
            one.take(reply)


def understood(message: Any, checker: ArgumentChecker, *, answers: bool) -> Round:
    """Read an agent's message.

    Args:
        message: text, an OpenAI message, or calls.
        checker: the environment's tools.
        answers: an `<answer>` counts, after the calls of the message (the published dialect).

    Raises:
        UsageError: the message is neither text nor calls.
    """
    items = [_checked(item, checker) for item in parse_tool_calls(message)]
    answer = final_answer(message) if answers else None
    if answer is not None:
        items.append(ParsedCall(ANSWER, {"answer": answer}))
    return Round(items)


def replayed(action: Any, checker: ArgumentChecker, *, answers: bool) -> Round:
    """Read a recorded action: calls, answers, and the errors that unreadable calls became.

    Raises:
        UsageError: the action is no list.
    """
    if not isinstance(action, list | tuple):
        raise UsageError(
            f"an action of a tool-use environment is a list of calls, not {action!r:.80}"
        )
    items: list[Checked] = []
    for entry in action:
        if isinstance(entry, Mapping) and "error" in entry:
            items.append(CallError(str(entry["error"])))
        elif answers and isinstance(entry, Mapping) and "answer" in entry:
            items.append(ParsedCall(ANSWER, {"answer": str(entry["answer"])}))
        else:
            items += [_checked(item, checker) for item in parse_tool_calls([entry])]
    return Round(items)


def _checked(item: Item, checker: ArgumentChecker) -> Checked:
    return checker.prepare(item) if isinstance(item, ParsedCall) else item


def _action(item: Checked) -> dict[str, Any]:
    if isinstance(item, CallError):
        return {"error": item.message}
    if item.name == ANSWER:
        return {"answer": item.arguments["answer"]}
    return {"name": item.name, "arguments": item.arguments}
