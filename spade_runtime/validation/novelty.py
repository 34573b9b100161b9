"""Blind replay of tool solutions (SPD706): each value must have been shown before it is used."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from spade_runtime.sandbox.wire import RawTool
from spade_runtime.validation.bench import Bench
from spade_runtime.validation.text import shown
from spade_runtime.validation.tooluse import ToolPlay, spoken

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_WORD = re.compile(r"\w+", re.UNICODE)
_NAMED = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
)
_NUMBERS = {word: float(number) for number, word in enumerate(_NAMED.split(" "))}
_NUMBERS |= {"once": 1.0, "twice": 2.0, "dozen": 12.0, "single": 1.0, "both": 2.0, "no": 0.0}


class Seen:
    """All that an agent has been shown so far."""

    def __init__(self, text: str) -> None:
        self._text = ""
        self._words: set[str] = set()
        self._numbers: set[float] = {0.0, 1.0}
        self.show(text)

    def show(self, text: str) -> None:
        """Add a text."""
        lower = text.lower()
        self._text += "\n" + lower
        found = _WORD.findall(lower)
        self._words.update(found)
        self._numbers.update(_NUMBERS[word] for word in found if word in _NUMBERS)
        self._numbers.update(abs(float(number)) for number in _NUMBER.findall(lower)[:5000])

    def has(self, value: Any) -> bool:
        """Whether a value could be taken from what was shown."""
        if value is None or isinstance(value, bool):
            return True
        if isinstance(value, (int, float)):
            return abs(float(value)) in self._numbers
        text = str(value).lower().strip()
        if not text or text in self._text:
            return True
        words = _WORD.findall(text)
        return bool(words) and all(
            word in self._words or (word.isdigit() and float(word) in self._numbers)
            for word in words
        )


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value


def _unseen(play: ToolPlay, schemas: str) -> tuple[int, Any] | None:
    """The first call of a replay with a value from nowhere, and that value."""
    seen = Seen(schemas)
    shown_turns = 0
    for place, (call, turn) in enumerate(zip(play.calls, play.turns, strict=True)):
        for text in play.instructions[shown_turns : turn + 1]:
            seen.show(text)
        shown_turns = turn + 1
        arguments = json.loads(call[1])
        for value in _arguments(arguments):
            if not seen.has(value):
                return place, value
        reply = play.replies[place] if place < len(play.replies) else None
        if isinstance(reply, RawTool) and isinstance(reply.result, str):
            seen.show(reply.result)
    return None


def _arguments(arguments: Any) -> Iterator[Any]:
    """Values of a call; its argument names are the schema's own."""
    values: Sequence[Any] = list(arguments.values()) if isinstance(arguments, dict) else [arguments]
    for value in values:
        yield from _leaves(value)


def audit_values(bench: Bench) -> None:
    """Walk each replay of a solution and look for values that nothing had shown."""
    assert bench.loaded is not None
    schemas = bench.loaded.schemas.decode(errors="replace")
    for play in bench.replays:
        if not isinstance(play, ToolPlay) or play.problem is not None:
            continue
        found = _unseen(play, schemas)
        if found is not None:
            place, value = found
            bench.found(
                "SPD706",
                f"the solution passes {shown(str(value))}, which no instruction, schema or tool "
                "result had shown before: an agent could only guess it",
                seed=play.seed,
                action=spoken(play.calls[place]),
            )
            return
