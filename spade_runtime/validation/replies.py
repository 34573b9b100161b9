"""Judges raw replies, in the parent: each is a claim, and becomes a value or a problem.

Codes follow contract.md section 3: SPD802 outranks the code of the call in which it happened, and
SPD804 outranks SPD305 and SPD407.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from spade_runtime.sandbox.wire import Bad, Raised, RawReset, RawStep, RawTool
from spade_runtime.spec import Dialect, Limits
from spade_runtime.validation.text import shown

_RAISED = {
    "load": ("SPD301", "loading the module raised"),
    "construct": ("SPD302", "the constructor raised"),
    "reset": ("SPD303", "reset raised"),
    "step": ("SPD401", "step raised"),
    "close": ("SPD401", "close raised"),
    "tool": ("SPD503", "a tool raised"),
    "criterion": ("SPD505", "the criterion raised"),
    "solution": ("SPD601", "solution() raised"),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one reply.

    Attributes:
        code: the finding's code.
        message: what was expected and what was seen.
        line: the line of the source that raised, where known.
    """

    code: str
    message: str
    line: int | None = None


def raised_problem(reply: Raised, where: str = "") -> Problem:
    """The problem that an exception is.

    Args:
        reply: the exception.
        where: what it left, in place of the phase's own words (`tool 'look'`).
    """
    code, text = _RAISED.get(reply.phase, ("SPD803", f"{reply.phase} raised"))
    if where:
        text = f"{where} raised"
    said = f": {reply.message}" if reply.message else ""
    if reply.code == "SPD804":
        return Problem("SPD804", f"in {reply.phase}: {reply.message}", reply.line)
    if reply.code:
        code = reply.code
    elif reply.exc_type == "MemoryError":
        code = "SPD802"
    return Problem(code, f"{text} {reply.exc_type}{said}", reply.line)


class ReplyChecker:
    """Checks replies against the limits and the dialect's reward range.

    Args:
        limits: lengths and sizes.
        dialect: `published` allows rewards in [-10, 10].
    """

    def __init__(self, limits: Limits, dialect: Dialect) -> None:
        self._chars = limits.observation_chars
        self._info = limits.info_bytes
        self._low, self._high = (-10.0, 10.0) if dialect == "published" else (-1.0, 1.0)

    def reset(self, reply: RawReset | Raised | Bad) -> Problem | None:
        """What is wrong with a reset, or None."""
        if type(reply) is Raised:
            return raised_problem(reply)
        if type(reply) is Bad:
            return Problem("SPD304", f"reset returns (str, dict); it returned {_seen(reply)}")
        if type(reply) is not RawReset:
            return Problem("SPD805", "a reply to reset is none")
        if type(reply.observation) is Bad and reply.observation.type_name != "str":
            text = _seen(reply.observation)
            return Problem("SPD304", f"the first observation is a str; reset returned {text}")
        return self._text(reply.observation, "the first observation") or self._data(
            reply.info, "SPD304", "reset"
        )

    def step(self, reply: RawStep | Raised | Bad) -> Problem | None:
        """What is wrong with a step, or None; the common case is one comparison chain."""
        if type(reply) is RawStep:
            observation, info = reply.observation, reply.info
            if (
                type(observation) is str
                and 0 < len(observation) <= self._chars
                and type(reply.reward) in (int, float)
                and self._low <= reply.reward <= self._high  # type: ignore[operator]
                and type(reply.terminated) is bool
                and type(reply.truncated) is bool
                and type(info) is bytes
                and len(info) <= self._info
            ):
                return None
            return self._step_problem(reply)
        if type(reply) is Raised:
            return raised_problem(reply)
        seen = _seen(reply) if type(reply) is Bad else "something else"
        return Problem(
            "SPD402",
            f"step returns (observation, reward, terminated, truncated, info); it returned {seen}",
        )

    def _step_problem(self, reply: RawStep) -> Problem | None:
        rows: tuple[tuple[str, Any, str, tuple[type, ...]], ...] = (
            ("observation", reply.observation, "a str", (str,)),
            ("reward", reply.reward, "an int or float", (int, float)),
            ("terminated", reply.terminated, "True or False", (bool,)),
            ("truncated", reply.truncated, "True or False", (bool,)),
        )
        for name, value, wanted, kinds in rows:
            if type(value) not in kinds and not (type(value) is Bad and value.type_name == "str"):
                seen = _seen(value) if type(value) is Bad else f"a {type(value).__name__}"
                return Problem("SPD402", f"step's {name} is {wanted}; it returned {seen}")
        if type(reply.info) is Bad and reply.info.type_name != "dict":
            return Problem("SPD402", f"step's info is a dict; it returned {_seen(reply.info)}")
        if not self._low <= reply.reward <= self._high:  # type: ignore[operator]
            return Problem(
                "SPD403",
                f"a reward is finite and in [{self._low:g}, {self._high:g}]; "
                f"step returned {reply.reward!r}",
            )
        return self._text(reply.observation, "the observation") or self._data(
            reply.info, "SPD402", "step"
        )

    def tool(self, reply: RawTool | Raised, name: str) -> Problem | None:
        """What is wrong with a tool call's result (not with the criterion asked after it)."""
        if type(reply) is Raised:
            return raised_problem(reply, f"tool {name}")
        if type(reply) is not RawTool:
            return Problem("SPD805", "a reply to a tool call is none")
        if type(reply.result) is Bad and reply.result.type_name != "str":
            text = _seen(reply.result)
            return Problem("SPD503", f"tool {name} returns text or JSON; it returned {text}")
        if reply.result == "":
            return None
        return self._text(reply.result, f"the result of tool {name}")

    def _text(self, value: str | Bad, what: str) -> Problem | None:
        if isinstance(value, Bad):
            return Problem("SPD305", f"{what} does not encode as UTF-8: {_seen(value)}")
        if not value:
            return Problem("SPD305", f"{what} is empty")
        if len(value) > self._chars:
            return Problem(
                "SPD305", f"{what} has {len(value)} characters, and {self._chars} are allowed"
            )
        return None

    def _data(self, value: bytes | Bad, wrong_type: str, call: str) -> Problem | None:
        if isinstance(value, Bad):
            if value.type_name != "dict":
                return Problem(wrong_type, f"{call}'s info is a dict; it returned {_seen(value)}")
            return Problem("SPD407", f"the info of {call} is {value.reason or 'not JSON'}")
        if len(value) > self._info:
            return Problem(
                "SPD407",
                f"the info of {call} takes {len(value)} bytes, and {self._info} are allowed",
            )
        try:
            held = json.loads(value)
        except (ValueError, RecursionError):
            held = None
        if type(held) is not dict:
            return Problem("SPD407", f"the info of {call} does not read back as a JSON object")
        return None


def same_json(left: bytes | Bad, right: bytes | Bad) -> bool:
    """Whether two infos hold the same, in whatever order their keys stand."""
    if left == right:
        return True
    if isinstance(left, Bad) or isinstance(right, Bad):
        return False
    try:
        return bool(json.loads(left) == json.loads(right))
    except (ValueError, RecursionError):
        return False


def _seen(value: Bad) -> str:
    """A value that the wire has no place for, in words."""
    reason = f" ({value.reason})" if value.reason else ""
    return (
        f"a {value.type_name} {shown(value.repr)}{reason}"
        if value.repr
        else (f"a {value.type_name}{reason}")
    )
