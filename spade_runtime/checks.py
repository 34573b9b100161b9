"""What a child claims, checked in the parent: a value of the contract's types, or a typed fault.

Pure functions, shared by the session and the validator. Each takes one raw reply and returns plain
values; a reply that the contract forbids raises `EnvViolation`, one that an exception left
`EnvRaised` (or the fault whose code outranks it), both with the code of contract.md section 3.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import msgspec

from spade_runtime.errors import EnvFault, EnvViolation, Evidence
from spade_runtime.sandbox.opening import raised_fault
from spade_runtime.sandbox.wire import (
    BAD_REPR_MAX,
    PRINTED_TAIL,
    TEXT_MAX,
    Bad,
    Columns,
    Raised,
    RawCriterion,
    RawReset,
    RawSolution,
    RawStep,
    RawTool,
)
from spade_runtime.spec import EnvSpec, Limits
from spade_runtime.words import an

NO_OUTPUT = "(no output)"
USER_TURNS = (3, 5)

_OUTRANKING = frozenset(("SPD103", "SPD802", "SPD804"))
_decode_json = msgspec.json.Decoder().decode


class Beginning(NamedTuple):
    """A checked `reset`; `turns` are a tool-use environment's instructions, empty for a game."""

    observation: str
    info: dict[str, Any]
    turns: list[str]


class Transition(msgspec.Struct, frozen=True):
    """A checked `step` of a game."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class Transitions(NamedTuple):
    """Checked steps of a group of games, by column.

    Attributes:
        infos: None where all are empty.
        paid: some reward is not 0.
        ended: some step terminated or truncated its episode.
    """

    observations: list[str]
    rewards: list[float]
    terminated: list[bool]
    truncated: list[bool]
    infos: list[dict[str, Any]] | None
    paid: bool
    ended: bool


def beginning(raw: Any, spec: EnvSpec, limits: Limits) -> Beginning:
    """Check the reply to `reset`.

    Raises:
        EnvFault: SPD302 or SPD303 where it raised, SPD304, SPD305, SPD407 or SPD504 where its
            values are not the contract's.
    """
    if not isinstance(raw, RawReset):
        _no_value(raw, "SPD302" if getattr(raw, "phase", "") == "construct" else "SPD303", "SPD304")
    observation = _observation(raw.observation, "reset", "SPD304", limits)
    info = _info(raw.info, "reset", "SPD304", limits)
    turns: list[str] = []
    if spec.kind == "tool_use":
        if raw.turns is None:
            shown = _shown(raw.turns_bad) if raw.turns_bad else "missing"
            _refuse("SPD504", f"an instruction of user_turns() is {shown}, not text")
        turns = [_observation(text, "user_turns", "SPD504", limits) for text in raw.turns]
        low, high = USER_TURNS if spec.dialect == "contract" else (1, 64)
        if not low <= len(turns) <= high:
            given = "1 turn" if len(turns) == 1 else f"{len(turns)} turns"
            _refuse("SPD504", f"user_turns() gave {given}; {low} to {high} are expected")
    return Beginning(observation, info, turns)


def transition(raw: Any, spec: EnvSpec, limits: Limits) -> Transition:
    """Check the reply to a game's `step`.

    Raises:
        EnvFault: SPD401 where it raised, SPD402, SPD305, SPD403 or SPD407 where its values are not
            the contract's.
    """
    if type(raw) is not RawStep:
        _no_value(raw, "SPD401", "SPD402")
    # What is plainly right is seen here; the helpers say what is wrong with the rest.
    observation, reward, info = raw.observation, raw.reward, raw.info
    if type(observation) is not str or not 0 < len(observation) <= limits.observation_chars:
        observation = _observation(observation, "step", "SPD402", limits)
    if type(reward) is not float or not -1.0 <= reward <= 1.0:
        reward = _reward(reward, spec)
    terminated, truncated = raw.terminated, raw.truncated
    if type(terminated) is not bool:
        _wrong_type(terminated, "step's terminated", "bool", "SPD402")
    if type(truncated) is not bool:
        _wrong_type(truncated, "step's truncated", "bool", "SPD402")
    notes = {} if info == b"{}" else _info(info, "step", "SPD402", limits)
    return Transition(observation, reward + 0.0, terminated, truncated, notes)


def by_column(raws: Sequence[Any]) -> Columns | None:
    """The replies of a few games as the columns that they might have come in.

    None where some reply is not of the types that columns have.
    """
    observations: list[str] = []
    rewards: list[float] = []
    terminated: list[bool] = []
    truncated: list[bool] = []
    infos: list[bytes] = []
    for raw in raws:
        if (
            type(raw) is not RawStep
            or type(raw.observation) is not str
            or isinstance(raw.reward, Bad)
            or isinstance(raw.terminated, Bad)
            or isinstance(raw.truncated, Bad)
            or isinstance(raw.info, Bad)
        ):
            return None
        observations.append(raw.observation)
        rewards.append(raw.reward)
        terminated.append(raw.terminated)
        truncated.append(raw.truncated)
        infos.append(raw.info)
    return Columns(
        0,
        0,
        True,
        observations,
        rewards if any(rewards) else None,
        terminated if True in terminated else None,
        truncated if True in truncated else None,
        None if infos.count(b"{}") == len(infos) else infos,
    )


def transitions(raws: Columns, spec: EnvSpec, limits: Limits) -> Transitions | None:
    """Check the replies of a group of games at once; their types are those of the wire.

    It takes a fraction of the time of `transition` for each, and says nothing of what is wrong:
    None asks the caller to look at the replies one by one.
    """
    observations = raws.observations
    count = len(observations)
    lengths = list(map(len, observations))
    if 0 in lengths or max(lengths) > limits.observation_chars:
        return None
    low, high = spec.reward_range
    rewards = raws.rewards
    if rewards is not None:
        # The sum finds what is not a number, wherever it stands.
        if not (low <= min(rewards) and max(rewards) <= high) or math.isnan(sum(rewards)):
            return None
        rewards = [reward + 0.0 for reward in rewards]
    notes: list[dict[str, Any]] | None = None
    if raws.infos is not None:
        try:
            notes = [_info(info, "step", "SPD402", limits) for info in raws.infos]
        except EnvFault:
            return None
    return Transitions(
        observations,
        rewards or [0.0] * count,
        raws.terminated or [False] * count,
        raws.truncated or [False] * count,
        notes,
        rewards is not None,
        raws.terminated is not None or raws.truncated is not None,
    )


def tool_result(raw: Any, limits: Limits) -> tuple[str, bool]:
    """Check the reply to a tool call: the text for the agent, and whether the turn is done.

    Raises:
        EnvFault: SPD503 where the tool raised, SPD505 where the criterion did, SPD305 where the
            result is over-long or does not encode.
    """
    if type(raw) is not RawTool:
        _no_value(raw, "SPD503", "SPD503")
    text = NO_OUTPUT if raw.result == "" else raw.result
    return _observation(text, "the tool", "SPD503", limits), _done(raw.done)


def criterion(raw: Any) -> bool:
    """Check the reply to the question whether a user turn is done.

    Raises:
        EnvFault: SPD505.
    """
    return _done(raw.done if isinstance(raw, RawCriterion) else raw)


def solution(raw: Any, spec: EnvSpec) -> list[Any] | None:
    """Check a reference solution.

    Returns:
        A game's actions, or for each user turn of a tool-use environment its calls as
        `(name, arguments)`; None where there is no solution.

    Raises:
        EnvFault: SPD601 where it raised or is of another form.
    """
    if not isinstance(raw, RawSolution):
        _no_value(raw, "SPD601", "SPD601")
    if raw.bad is not None:
        reason = f": {raw.bad.reason[:TEXT_MAX]}" if raw.bad.reason else ""
        _refuse("SPD601", f"solution() holds {_shown(raw.bad)}{reason}")
    if spec.kind == "game":
        return raw.actions
    if raw.calls is None:
        return None
    return [[(name, _arguments(given)) for name, given in calls] for calls in raw.calls]


def is_solved(step: Transition, spec: EnvSpec) -> bool:
    """Whether a step solved the task: the parent's word for a win (contract.md section 1)."""
    return step.terminated and wins(step.reward, spec)


def wins(reward: float, spec: EnvSpec) -> bool:
    """Whether the reward of an episode's natural end is that of a win."""
    return reward > 0 if spec.dialect == "published" else reward == 1.0


def raised(raw: Raised, code: str) -> EnvFault:
    """The fault for an exception that left the class's code.

    Args:
        raw: what the child claims of it.
        code: the call's own code; only SPD103, SPD802 and SPD804 outrank it.
    """
    claimed = msgspec.structs.replace(
        raw,
        phase=raw.phase[:20],
        exc_type=raw.exc_type[:100],
        message=raw.message[:TEXT_MAX],
        code=raw.code if raw.code in _OUTRANKING else "",
        printed_tail=raw.printed_tail[-PRINTED_TAIL:],
    )
    fault = raised_fault(claimed, code)
    assert isinstance(fault, EnvFault)
    return fault


def _refuse(code: str, message: str) -> NoReturn:
    raise EnvViolation(message, code=code)


def _no_value(raw: Any, raised_code: str, type_code: str) -> NoReturn:
    """Raise for a reply that is not even of the call's own shape."""
    if isinstance(raw, EnvFault):
        raise raw
    if isinstance(raw, Raised):
        raise raised(raw, raised_code)
    if isinstance(raw, Bad):
        wanted = "(str, dict)" if type_code == "SPD304" else "a 5-tuple"
        raise EnvViolation(
            f"{wanted} is expected, not {_shown(raw)}",
            code=type_code,
            evidence=Evidence(phase="reset" if type_code == "SPD304" else "step"),
        )
    raise TypeError(f"no reply of a child: {raw!r:.200}")


def _shown(raw: Bad) -> str:
    return f"{an(raw.type_name[:100])} {raw.repr[:BAD_REPR_MAX]}".rstrip()


def _wrong_type(value: Any, what: str, wanted: str, code: str) -> NoReturn:
    shown = _shown(value) if isinstance(value, Bad) else an(type(value).__name__)
    _refuse(code, f"{what} is {shown}; {wanted} is expected")


def _observation(value: Any, call: str, code: str, limits: Limits) -> str:
    if type(value) is not str:
        if isinstance(value, Bad) and value.type_name == "str":
            reason = value.reason[:TEXT_MAX] or "can not be sent"
            _refuse("SPD305", f"the text of {call} {reason}: {value.repr[:BAD_REPR_MAX]}")
        _wrong_type(value, f"the text of {call}", "str", code)
    if not value:
        _refuse("SPD305", f"the text of {call} is empty")
    if len(value) > limits.observation_chars:
        _refuse(
            "SPD305",
            f"the text of {call} is {len(value)} characters long; "
            f"{limits.observation_chars} are allowed",
        )
    return value


def _reward(value: Any, spec: EnvSpec) -> float:
    if type(value) is not float and type(value) is not int:
        _wrong_type(value, "step's reward", "int or float", "SPD402")
    low, high = spec.reward_range
    if low <= value <= high:
        return float(value)
    if not math.isfinite(value):
        _refuse("SPD403", f"step's reward is {float(value)}, which is not finite")
    if spec.dialect == "published":
        return max(low, min(high, float(value)))
    seen = f"step's reward is {float(value)}"
    return _refuse("SPD403", f"{seen}; it lies between {low:g} and {high:g}")


def _info(value: Any, call: str, code: str, limits: Limits) -> dict[str, Any]:
    if type(value) is not bytes:
        if isinstance(value, Bad) and value.type_name == "dict":
            _refuse("SPD407", f"the info of {call} is {value.reason[:TEXT_MAX] or 'not JSON'}")
        _wrong_type(value, f"the info of {call}", "dict", code)
    if value == b"{}":
        return {}
    if len(value) > limits.info_bytes:
        _refuse(
            "SPD407",
            f"the info of {call} is {len(value)} bytes of JSON; {limits.info_bytes} are allowed",
        )
    found = _json(value)
    if type(found) is not dict:
        _refuse("SPD407", f"the info of {call} is no JSON object")
    return found


def _json(data: bytes) -> Any:
    try:
        return _decode_json(data)
    except (msgspec.DecodeError, RecursionError):
        # The quick decoder stops at integers of more than 64 bits; the slow one decides.
        try:
            return json.loads(data, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            return None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _arguments(data: bytes) -> dict[str, Any]:
    found = _json(data)
    if type(found) is not dict:
        _refuse("SPD601", "the arguments of a call in solution() are no JSON object")
    return found


def _done(value: Any) -> bool:
    if type(value) is bool:
        return value
    if isinstance(value, Raised):
        raise raised(value, "SPD505")
    if isinstance(value, EnvFault):
        raise value
    return _wrong_type(value, "what a criterion gave", "bool", "SPD505")
