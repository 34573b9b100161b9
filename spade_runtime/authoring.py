"""What generated code may extend and call (contract.md section 1).

This module runs in the sandbox's child beside the code of an environment, so it uses the standard
library only. Nothing here decides what counts: a criterion, a tool's result and an instruction are
claims of the child, and the parent checks, counts and pays (`spade_runtime.sandbox.session`).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

TOOL_MARK = "_spade_tool"
_BOX = re.compile(r"\\boxed\s*\{")
_BRACE = re.compile(r"[{}]")
_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+|(?=\.\d))(?:\.\d*)?(?:[eE][+-]?\d{1,3})?\Z")
_DIGITS_MAX = 64


class Turn(NamedTuple):
    """One instruction of the simulated user.

    Attributes:
        text: what the user asks for.
        done: called with `self.state` after each executed call; true once the wish is met.
    """

    text: str
    done: Callable[[Any], Any]


class Call(NamedTuple):
    """One call of a reference solution."""

    name: str
    arguments: dict[str, Any]


def call(name: str, /, **arguments: Any) -> Call:
    """Write one call of a `solution()`.

    >>> call("find_orders", customer="Ana Silva")
    Call(name='find_orders', arguments={'customer': 'Ana Silva'})
    """
    return Call(name, arguments)


def tool(function: _Function) -> _Function:
    """Declare a method as a tool; its schema comes from its signature and docstring.

    Raises:
        TypeError: what is decorated is no plain function (a `staticmethod`, say).
    """
    if not hasattr(function, "__code__"):
        raise TypeError(
            f"@tool stands on a plain method with self, not on a {type(function).__name__}"
        )
    setattr(function, TOOL_MARK, True)
    return function


class TextEnv:
    """Base of games, for its helpers; a game may do without it."""

    skill: str = ""
    max_turns: int = 20

    @staticmethod
    def words(action: Any) -> list[str]:
        """Split an action into lower-case words; never raises.

        >>> TextEnv.words(" Move  CRATE 3 ")
        ['move', 'crate', '3']
        """
        return str(action).lower().split()

    @staticmethod
    def integer(text: Any) -> int | None:
        """Read a whole number of at most 18 digits, or None; never raises.

        >>> TextEnv.integer(" -12 "), TextEnv.integer("twelve"), TextEnv.integer("9" * 5000)
        (-12, None, None)
        """
        found = re.fullmatch(r"\s*([+-]?[0-9]{1,18})\s*", str(text))
        return int(found.group(1)) if found else None


class ToolEnv:
    """Base of tool-use environments: `setup`, tools, `user_turns`, and perhaps `solution`.

    `reset` belongs to this class; `step` does not exist, since the parent dispatches calls.

    Attributes:
        state: what tools change and criteria read.
    """

    skill: str = ""
    max_turns: int = 20
    state: Any

    def setup(self, rng: random.Random) -> None:
        """Build `self.state` from a seeded generator."""

    def user_turns(self) -> Iterable[Turn]:
        """Give the user's three to five instructions, in order."""
        raise NotImplementedError("a tool-use environment defines user_turns()")

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        """Set up one task; the first observation is the first instruction."""
        self.state = {}
        self.setup(random.Random(seed))
        turns = list(self.user_turns())
        for position, turn in enumerate(turns, 1):
            if not isinstance(turn, Turn):
                kind = type(turn).__name__
                raise TypeError(
                    f"user_turns() gave a {kind} as item {position}; write Turn(text, done=...)"
                )
            if not callable(turn.done):
                raise TypeError(f"turn {position} has no criterion: done must be callable")
        self._spade_turns = turns
        return (turns[0].text if turns else ""), {}


def instructions(env: ToolEnv) -> list[Any]:
    """The instruction texts of the task that `reset` left, unchecked."""
    return [turn.text for turn in env._spade_turns]


def criterion_holds(env: ToolEnv, turn: int) -> bool:
    """Ask whether user turn `turn` (from 0) is done now; what the criterion raises goes through."""
    return bool(env._spade_turns[turn].done(env.state))


def declared_tools(cls: type) -> dict[str, Callable[..., Any]]:
    """The functions that `@tool` marks, by name, in the order of their definition.

    A subclass that redefines a tool without the mark takes it away.
    """
    found: dict[str, Callable[..., Any]] = {}
    for owner in reversed(cls.__mro__):
        for name, value in vars(owner).items():
            function = getattr(value, "__func__", value)
            if getattr(function, TOOL_MARK, False) is True:
                found[name] = value
            else:
                found.pop(name, None)
    return found


def rendered(result: Any) -> str:
    """A tool's result as the text that the agent sees.

    Raises:
        TypeError: the result is neither text nor JSON-serialisable; the message says what it is.
    """
    if type(result) is str:
        return result
    try:
        return json.dumps(result, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        kind = type(result).__name__
        raise TypeError(f"a tool returned a {kind}, neither text nor JSON: {problem}") from None


def boxed(text: str) -> str | None:
    r"""Content of the last balanced `\boxed{...}`, stripped, or None where there is none.

    Doubled braces are stripped around plain words and numbers only, so JSON in a box keeps its
    braces. Linear time in the length of the text.

    >>> boxed(r"so \boxed{4} or \boxed{{go}}"), boxed("no box")
    ('go', None)
    """
    if "\\boxed" not in text:
        return None
    opens = {found.end() - 1: found.start() for found in _BOX.finditer(text)}
    if not opens:
        return None
    best: tuple[int, int] | None = None
    stack: list[int] = []
    for found in _BRACE.finditer(text, next(iter(opens))):
        if found.group() == "{":
            stack.append(found.start())
        elif stack:
            start = stack.pop()
            # Of nested boxes the inner one begins last, so it is the answer.
            if start in opens and (best is None or start > best[0]):
                best = (start, found.start())
    if best is None:
        return None
    content = text[best[0] + 1 : best[1]].strip()
    inner = re.fullmatch(r"\{\s*([\w .,+-]*?)\s*\}", content)
    return inner.group(1) if inner else content


def _number(text: str) -> Fraction | None:
    if not text or len(text) > _DIGITS_MAX or not text.isascii():
        return None
    whole, slash, below = text.partition("/")
    parts = [part.strip() for part in ((whole, below) if slash else (whole,))]
    if not all(_NUMBER.match(part) for part in parts):
        return None
    values = [Fraction(part.replace(",", "")) for part in parts]
    if len(values) == 2:
        return values[0] / values[1] if values[1] else None
    return values[0]


def answers_match(answer: Any, expected: Any, tolerance: float = 0.0) -> bool:
    """Whether an answer says the same as the expected one; never raises.

    Numbers are compared as exact fractions (`0.50`, `1/2` and `.5` agree, `1,000` is a thousand),
    within `tolerance` where one is given; other text without case, a final full stop or doubled
    spaces.

    >>> answers_match(" 0.50 ", "1/2"), answers_match("The  Red door.", "the red door")
    (True, True)
    >>> answers_match("9" * 5000, 7)
    False
    """
    left, right = (
        " ".join(str(text).split()).rstrip(".").casefold() for text in (answer, expected)
    )
    if left == right:
        return True
    first, second = _number(left), _number(right)
    if first is None or second is None:
        return False
    return abs(first - second) <= Fraction(tolerance)
