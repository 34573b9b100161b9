"""What a freshly forked child does before it reads a byte: gives up everything it can.

The order matters: limits while they may still be set, the uid before the death signal (a change of
uid clears it), no_new_privs before Landlock and seccomp (both ask for it), seccomp last, since it
forbids all the calls before it.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass

from spade_runtime.sandbox import kernel
from spade_runtime.sandbox.syscalls import REPLY_FD, REQUEST_FD

STACK_BYTES = 8 * 1024 * 1024
_RULESET_FD = 5
_CPU_BACKSTOP_SECONDS = 3600

LOCKDOWN_FAILED = 90
"""Exit statuses from here on name the step of the lockdown that failed (`STEPS`)."""

STEPS: tuple[str, ...] = (
    "descriptors",
    "rlimits",
    "uid",
    "capabilities",
    "dumpable",
    "death signal",
    "no_new_privs",
    "landlock",
    "seccomp",
)


@dataclass(slots=True)
class Plan:
    """Which layers a child puts on; the zygote fills it in once.

    Attributes:
        rlimits: limit memory, processes, files and cores.
        unique_uid: the zygote is root and gives every child its own uid.
        drop_capabilities: the child lives in a user namespace, where it would keep them all.
        undumpable: forbid tracing by the same uid.
        ruleset: descriptor of the Landlock ruleset, or -1.
        program: the seccomp filter as BPF, or nothing.
    """

    rlimits: bool = True
    unique_uid: bool = False
    drop_capabilities: bool = False
    undumpable: bool = True
    ruleset: int = -1
    program: bytes = b""


def keep_only(request: int, reply: int, ruleset: int) -> None:
    """Leave nothing open but the two pipes (at 3 and 4) and the ruleset (at 5)."""
    # First out of the way, so that no target number is also a source.
    free = _RULESET_FD + 1
    spare = [fcntl.fcntl(source, fcntl.F_DUPFD, free) for source in (request, reply)]
    spare_ruleset = fcntl.fcntl(ruleset, fcntl.F_DUPFD, free) if ruleset >= 0 else -1
    os.dup2(spare[0], REQUEST_FD)
    os.dup2(spare[1], REPLY_FD)
    if spare_ruleset >= 0:
        os.dup2(spare_ruleset, _RULESET_FD)
    os.closerange(0, REQUEST_FD)
    os.closerange(_RULESET_FD + (ruleset >= 0), 1 << 20)


def limit_resources(memory_bytes: int) -> None:
    """Set the limits that the kernel keeps; processor time is the parent's to watch."""
    for kind, value in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_STACK, STACK_BYTES),
        (resource.RLIMIT_NPROC, 0),
        # Not one more descriptor: those that are open stay usable.
        (resource.RLIMIT_NOFILE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_CPU, _CPU_BACKSTOP_SECONDS),
    ):
        _, hard = resource.getrlimit(kind)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))


def _become(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _landlock() -> None:
    kernel.landlock_restrict(_RULESET_FD)
    os.close(_RULESET_FD)


def apply(plan: Plan, request: int, reply: int, *, uid: int, memory_bytes: int) -> None:
    """Lock the calling process down, or end it with a status that names the step that failed.

    Args:
        plan: the layers to put on.
        request: the pipe that requests come in by; becomes descriptor 3.
        reply: the pipe that replies leave by; becomes descriptor 4.
        uid: the uid to become, where the plan says so.
        memory_bytes: limit of the address space.
    """
    program = plan.program
    steps: tuple[tuple[bool, Callable[[], None]], ...] = (
        (True, lambda: keep_only(request, reply, plan.ruleset)),
        (plan.rlimits, lambda: limit_resources(memory_bytes)),
        (plan.unique_uid, lambda: _become(uid)),
        (plan.drop_capabilities, kernel.drop_capabilities),
        (plan.undumpable, lambda: kernel.set_dumpable(False)),
        (True, lambda: kernel.die_with_parent(signal.SIGKILL)),
        (True, kernel.no_new_privileges),
        (plan.ruleset >= 0, _landlock),
        (bool(program), lambda: kernel.load_filter(program)),
    )
    for number, (wanted, step) in enumerate(steps):
        try:
            if wanted:
                step()
        except BaseException:
            # Fail closed: a child that is not locked down never runs.
            os._exit(LOCKDOWN_FAILED + number)
