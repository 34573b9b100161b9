"""What goes over the two pipes: a u32 length, then MessagePack of typed array-like structs.

Requests come from the trusted parent. Replies are *claims* of a process that may be hostile: their
types are closed, every list is bounded, and the parent checks each value again.

A frame of a reply carries the nonce of its request, the position of its first item, and whether it
is the last one, so that large replies travel in chunks. Steps of games, which are most of what is
ever sent, travel by column.
"""

from __future__ import annotations

import struct
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta, Struct

HEADER = struct.Struct("<I")
SLOTS_MAX = 1024
"""Instances in one child."""
CHUNK_BYTES = 65536
"""A child sends what it has when an encoded chunk reaches this size."""
FRAME_MARGIN = 16384
"""Room in a frame beside an instance's reply: what was printed, a message, the envelope."""
PRINTED_TAIL = 2048
TEXT_MAX = 500
BAD_REPR_MAX = 200
REQUEST_BYTES_MAX = 64 * 1024 * 1024


class Bad(Struct, array_like=True, tag=1, forbid_unknown_fields=True):
    """A value of a type that has no place on the wire.

    Attributes:
        type_name: name of the value's type.
        repr: the value as text, at most 200 characters.
        reason: why it was not sent, where the type alone does not say it.
    """

    type_name: str
    repr: str
    reason: str = ""


class Raised(Struct, array_like=True, tag=2, forbid_unknown_fields=True):
    """A call that an exception left.

    Attributes:
        phase: the call, for example `step`.
        exc_type: name of the exception's type.
        message: its text, shortened.
        line: line of the source, where known.
        code: a finding code that outranks the call's own (SPD103, SPD802, SPD804), or nothing.
        printed_bytes: what the call had printed, in bytes.
        printed_tail: the end of it.
    """

    phase: str
    exc_type: str
    message: str
    line: int | None = None
    code: str = ""
    printed_bytes: int = 0
    printed_tail: str = ""


class RawReset(Struct, array_like=True, tag=3, forbid_unknown_fields=True):
    """One `reset`: `info` is JSON; `turns` are the instructions of a tool-use environment."""

    observation: str | Bad
    info: bytes | Bad
    turns: Annotated[list[str], Meta(max_length=64)] | None = None
    turns_bad: Bad | None = None
    printed_bytes: int = 0
    printed_tail: str = ""


class RawStep(Struct, array_like=True, tag=4, forbid_unknown_fields=True):
    """One `step` of a game."""

    observation: str | Bad
    reward: float | int | Bad
    terminated: bool | Bad
    truncated: bool | Bad
    info: bytes | Bad
    printed_bytes: int = 0
    printed_tail: str = ""


class RawTool(Struct, array_like=True, tag=5, forbid_unknown_fields=True):
    """One tool call, and whether the user's current turn is done after it."""

    result: str | Bad
    done: bool | Bad | Raised
    printed_bytes: int = 0
    printed_tail: str = ""


class RawCriterion(Struct, array_like=True, tag=6, forbid_unknown_fields=True):
    """Whether one user turn is done now."""

    done: bool | Bad
    printed_bytes: int = 0
    printed_tail: str = ""


class RawSolution(Struct, array_like=True, tag=7, forbid_unknown_fields=True):
    """A reference solution: `actions` of a game, or `calls` for each user turn.

    All None where the class has no `solution`, or a prose one in the published dialect.
    """

    actions: Annotated[list[str], Meta(max_length=4096)] | None = None
    calls: (
        Annotated[
            list[Annotated[list[tuple[str, bytes]], Meta(max_length=256)]], Meta(max_length=64)
        ]
        | None
    ) = None
    bad: Bad | None = None
    printed_bytes: int = 0
    printed_tail: str = ""


class RawClosed(Struct, array_like=True, tag=8, forbid_unknown_fields=True):
    """A `close` that returned, or was not there to call."""

    printed_bytes: int = 0
    printed_tail: str = ""


class RawFinding(Struct, array_like=True, forbid_unknown_fields=True):
    """One finding of the static gates inside the child."""

    code: str
    message: str
    line: int | None = None
    column: int | None = None


class Inspection(Struct, array_like=True, tag=9, forbid_unknown_fields=True):
    """What the static gates say of a source, before any of it has run.

    Attributes:
        findings: in the order of the gates.
        kind: `game` or `tool_use`, None where it could not be read.
        dialect: `contract`, `published` or `gem`.
        class_name: the environment class.
        title: its title.
        skill: its skill as written, or nothing.
        max_turns: its own limit in agent messages.
        version: its version.
        docstring: the class's docstring.
        has_solution: a `solution` method is there.
        imports: roots of the modules that the source uses.
    """

    findings: Annotated[list[RawFinding], Meta(max_length=1000)] = []
    kind: str | None = None
    dialect: str | None = None
    class_name: str | None = None
    title: str = ""
    skill: str = ""
    max_turns: int = 20
    version: int = 0
    docstring: str = ""
    has_solution: bool = False
    imports: Annotated[list[str], Meta(max_length=1000)] = []


class Reading(Struct, array_like=True, tag=12, forbid_unknown_fields=True):
    """What a child made of a source that it has read and not run.

    Attributes:
        inspection: for the parent.
        code: the compiled module, for the children that run it; None where there is none, or it
            would not fit into a reply.
    """

    inspection: Inspection
    code: bytes | None = None


class LoadReply(Struct, array_like=True, tag=10, forbid_unknown_fields=True):
    """What loading the module gave.

    Attributes:
        raised: what left the module, None where it loaded.
        schemas: the tools' schemas as one JSON list.
        problems: SPD501 and SPD502 as (code, message).
        printed_bytes: what the module printed, in bytes.
        printed_tail: the end of it.
    """

    raised: Raised | None = None
    schemas: bytes = b"[]"
    problems: Annotated[list[tuple[str, str]], Meta(max_length=1000)] = []
    printed_bytes: int = 0
    printed_tail: str = ""


class ProgramReply(Struct, array_like=True, tag=11, forbid_unknown_fields=True):
    """How a whole program ended.

    Attributes:
        exit_status: 0 to 255.
        stdout: what it printed.
        stderr: what it printed there, a traceback perhaps.
        code: SPD802 or SPD804 where it met that limit, or nothing.
    """

    exit_status: int
    stdout: str
    stderr: str
    code: str = ""


class Inspect(Struct, array_like=True, tag=1):
    """Ask for the static gates; carries the limits that the child keeps by itself."""

    nonce: int
    source: str
    policy: bool
    printed_bytes: int
    reply_bytes: int


class Load(Struct, array_like=True, tag=2):
    """Ask to run the module that another child has read.

    Attributes:
        code: the compiled module.
        source: its text, to be compiled here; empty where there is `code`.
        policy: it is held to the static policy.
        class_name: the environment class.
        tool_use: it is a tool-use environment.
        dialect: the form that it is written in.
        real_generators: Python's and numpy's global generators are kept apart between instances.
        printed_bytes: what a call may print.
        reply_bytes: what an instance's reply may weigh.
    """

    nonce: int
    code: bytes | None
    source: str
    policy: bool
    class_name: str
    tool_use: bool
    dialect: str
    real_generators: bool
    printed_bytes: int
    reply_bytes: int


class Reset(Struct, array_like=True, tag=3):
    """Ask for a fresh instance and its `reset` in each slot.

    With `fresh` off the slot's present instance is reset again, as runners do that keep it: the
    validator compares the two (SPD308).
    """

    nonce: int
    slots: list[int]
    seeds: list[int]
    fresh: bool = True


class Step(Struct, array_like=True, tag=4):
    """Ask for one `step` in each slot."""

    nonce: int
    slots: list[int]
    actions: list[str]


class Tool(Struct, array_like=True, tag=5):
    """Ask for one tool call in each slot: name, arguments as JSON, user turn."""

    nonce: int
    slots: list[int]
    calls: list[tuple[str, bytes, int]]


class Criteria(Struct, array_like=True, tag=6):
    """Ask whether a user turn is done now, in each slot."""

    nonce: int
    slots: list[int]
    turns: list[int]


class Solution(Struct, array_like=True, tag=7):
    """Ask for the reference solution of each slot's present state."""

    nonce: int
    slots: list[int]


class Close(Struct, array_like=True, tag=8):
    """Ask to close and forget the instances."""

    nonce: int
    slots: list[int]


class Run(Struct, array_like=True, tag=9):
    """Ask to run a whole program."""

    nonce: int
    source: str
    stdin: str
    argv: list[str]
    output_bytes: int


Request = Inspect | Load | Reset | Step | Tool | Criteria | Solution | Close | Run

T = TypeVar("T")
_Column = Meta(max_length=SLOTS_MAX)


class Columns(Struct, array_like=True, forbid_unknown_fields=True):
    """One frame of a reply to `Step`, by column: nothing in it is out of the ordinary.

    The types are the contract's own, so that they decode in a fraction of the time of as many
    `RawStep`; a group in which some step raised, printed or returned anything else comes, from
    there on, as a `Frame`. A column that holds nothing but its ordinary value is left out.

    Attributes:
        observations: one for each step.
        rewards: None where all are 0.
        terminated: None where none is.
        truncated: None where none is.
        infos: JSON, None where all are `{}`.
    """

    nonce: int
    first: int
    last: bool
    observations: Annotated[list[str], _Column]
    rewards: Annotated[list[float], _Column] | None = None
    terminated: Annotated[list[bool], _Column] | None = None
    truncated: Annotated[list[bool], _Column] | None = None
    infos: Annotated[list[bytes], _Column] | None = None

    def even(self) -> bool:
        """Whether all columns that are there have one length, which is not 0."""
        count = len(self.observations)
        columns = self.rewards, self.terminated, self.truncated, self.infos
        return count > 0 and all(one is None or len(one) == count for one in columns)

    def rows(self) -> list[RawStep]:
        """The same as one `RawStep` for each."""
        count = len(self.observations)
        return list(
            map(
                RawStep,
                self.observations,
                self.rewards or [0.0] * count,
                self.terminated or [False] * count,
                self.truncated or [False] * count,
                self.infos or [b"{}"] * count,
            )
        )


COLUMNS_MARK = 0x98
"""First byte of a frame of `Columns`, an array of eight; a `Frame` is one of four."""


class Frame(Struct, Generic[T], array_like=True, forbid_unknown_fields=True):
    """One frame of a reply."""

    nonce: int
    first: int
    last: bool
    items: Annotated[list[T], Meta(max_length=SLOTS_MAX)]


HELLO = b"\x00\x00\x00\x00"
"""A child's first bytes, once it is locked down: an empty frame."""

request_decoder: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
"""Stateless and used by the child alone."""
