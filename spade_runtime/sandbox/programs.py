"""The parent's half of running a whole program: its result, or the typed fault that ended it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from spade_runtime.errors import EnvFault, EnvMemoryExceeded, EnvOutputTooLarge, UsageError
from spade_runtime.sandbox import orders
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.wire import ProgramReply

_FAULTS: dict[str, type[EnvFault]] = {"SPD802": EnvMemoryExceeded, "SPD804": EnvOutputTooLarge}


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """How a program ended, by its own account.

    Attributes:
        exit_status: 0 to 255.
        stdout: what it printed.
        stderr: what it printed there; after an uncaught exception, the traceback.
        cpu_seconds: processor time that it used, by the kernel's account.
    """

    exit_status: int
    stdout: str
    stderr: str
    cpu_seconds: float


def run(
    child: RawChild, source: str, stdin: str, argv: Sequence[str], *, missing: Collection[str] = ()
) -> ProgramResult:
    """Run a program in a fresh child.

    Raises:
        UsageError: a module to preload is missing.
        EnvFault: it met a limit, or its process died.
    """
    if missing:
        raise UsageError(f"{', '.join(sorted(missing))} can't be preloaded: not installed here")
    before = child.cpu_seconds
    reply: ProgramReply = child.run(orders.program(child.limits, source, stdin, argv))[0]
    if reply.code in _FAULTS:
        what = "memory" if reply.code == "SPD802" else f"{child.limits.printed_bytes} bytes"
        raise _FAULTS[reply.code](f"the program used more than its {what}")
    used = child.cpu_seconds - before
    return ProgramResult(reply.exit_status & 0xFF, reply.stdout, reply.stderr, used)
