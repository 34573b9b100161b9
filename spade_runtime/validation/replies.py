"""Judges raw replies: each is a claim of the child, and sound or a problem with a finding's code.

What is sound is decided by `spade_runtime.checks`, as in play; here the common case is one chain
of comparisons, and a fault becomes data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from spade_runtime import checks
from spade_runtime.errors import EnvFault
from spade_runtime.sandbox.wire import Bad, Raised, RawReset, RawStep, RawTool
from spade_runtime.spec import Dialect, EnvSpec, Kind, Limits

_RAISED = {
    "load": "SPD301",
    "construct": "SPD302",
    "reset": "SPD303",
    "step": "SPD401",
    "close": "SPD401",
    "tool": "SPD503",
    "criterion": "SPD505",
    "solution": "SPD601",
}
_decode = msgspec.json.Decoder().decode


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


def problem_of(fault: EnvFault, where: str = "") -> Problem:
    """A fault as data.

    Args:
        fault: what a check raised.
        where: what it was about, in front of the message.
    """
    text = f"{where}: {fault}" if where else str(fault)
    return Problem(fault.code, text, fault.evidence.line)


def raised_problem(reply: Raised) -> Problem:
    """The problem that an exception is."""
    return problem_of(checks.raised(reply, _RAISED.get(reply.phase, "SPD803")))


class ReplyChecker:
    """Checks replies against the limits and the dialect.

    Args:
        limits: lengths and sizes.
        kind: `game` or `tool_use`.
        dialect: decides the range of rewards.
    """

    def __init__(self, limits: Limits, kind: Kind, dialect: Dialect) -> None:
        self._limits = limits
        self._chars = limits.observation_chars
        self._info = limits.info_bytes
        published = dialect == "published"
        self._low, self._high = (-10.0, 10.0) if published else (-1.0, 1.0)
        self.spec = EnvSpec(
            id="spade/Checked-v0",
            sha256="0" * 64,
            kind=kind,
            dialect=dialect,
            title="checked",
            skill="",
            reward_range=(self._low, self._high),
        )

    def reset(self, reply: RawReset | Raised | Bad) -> Problem | None:
        """What is wrong with a reset, or None."""
        try:
            checks.beginning(reply, self.spec, self._limits)
        except EnvFault as fault:
            return problem_of(fault)
        return None

    def step(self, reply: RawStep | Raised | Bad) -> Problem | None:
        """What is wrong with a step, or None."""
        if type(reply) is RawStep:
            observation, info = reply.observation, reply.info
            if (
                type(observation) is str
                and 0 < len(observation) <= self._chars
                and type(reply.reward) in (int, float)
                and self._low <= reply.reward <= self._high  # type: ignore[operator]
                and type(reply.terminated) is bool
                and type(reply.truncated) is bool
                and info == b"{}"
            ):
                return None
        try:
            checks.transition(reply, self.spec, self._limits)
        except EnvFault as fault:
            return problem_of(fault)
        return None

    def tool(self, reply: RawTool | Raised, name: str) -> Problem | None:
        """What is wrong with a tool call's result (not with the criterion asked after it)."""
        if type(reply) is RawTool and type(reply.done) is not bool:
            reply = RawTool(reply.result, False)
        try:
            checks.tool_result(reply, self._limits)
        except EnvFault as fault:
            return problem_of(fault, f"tool {name}")
        return None


def criterion_problem(done: Any, turn: int) -> Problem:
    """The problem of a criterion that gave neither True nor False.

    Args:
        done: what came in place of them.
        turn: the user turn, from 0.
    """
    try:
        checks.criterion(done)
    except EnvFault as fault:
        return problem_of(fault, f"the criterion of turn {turn + 1}")
    return Problem("SPD505", f"the criterion of turn {turn + 1} gave neither True nor False")


def same_json(left: bytes | Bad, right: bytes | Bad) -> bool:
    """Whether two infos hold the same, in whatever order their keys stand."""
    if left == right:
        return True
    if isinstance(left, Bad) or isinstance(right, Bad):
        return False
    try:
        return bool(_decode(left) == _decode(right))
    except (msgspec.DecodeError, RecursionError):
        return False
