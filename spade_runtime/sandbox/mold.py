"""The process that children are copies of: it knows how to fork, and never learns anything else.

Whoever serves requests keeps traces of them: process ids and statuses in freed memory, free lists
in another order, counters of the interpreter's own caches. A child forked from there could read how
many came before it. So the zygote forks one process that hears nothing but a bell, and that makes
the children *beside* itself: the zygote is their parent and reaps them, yet every one begins as a
copy of the same memory, down to the byte. What a child has to be told (its uid, its memory, its
pipes) it takes from a desk after the fork.
"""

from __future__ import annotations

import array
import contextlib
import os
import select
import signal
import struct
from typing import Any

from spade_runtime.sandbox import kernel
from spade_runtime.sandbox.facilities import Facilities
from spade_runtime.sandbox.lockdown import Plan, apply

_TERMS = struct.Struct("<QI")
"""What a new child is told: address space in bytes, and its uid."""
_FAILED = struct.Struct("<i")
"""What is answered in a child's place where there is none: the errno."""
_HERE = b"+"
_RING = b"!"
_PRACTICE = 256
_PIPES = 2
_ANSWER_MS = 20_000
# Linux's numbers: there is no module here to ask for them.
_SOL_SOCKET, _SCM_RIGHTS, _SCM_CREDENTIALS, _SO_PASSCRED = 1, 1, 2, 16
_INT = array.array("i").itemsize
_CREDENTIALS = struct.Struct("iII")
# Above those that a fresh namespace gives out by itself and the kernel keeps back.
_PID_FIRST, _PID_RANGE = 1000, 30_000


class Mold:
    """The zygote's handle of the mold.

    Args:
        plan: what children put on.
        desk: a pair of SEQPACKET sockets (`_socket.socket`), where children are told their terms.
        pids: descriptor of the kernel's `ns_last_pid`, or -1.

    Attributes:
        pidfd: readable once the mold is gone.
    """

    def __init__(self, plan: Plan, desk: tuple[Any, Any], pids: int) -> None:
        self._pids = pids
        ring, self._bell = os.pipe()
        self._desk, theirs = desk
        self._desk.setsockopt(_SOL_SOCKET, _SO_PASSCRED, 1)
        self._poll = select.poll()
        self._poll.register(self._desk.fileno(), select.POLLIN)
        zygote = os.getpid()
        pid = os.fork()
        if pid == 0:
            _stand(plan, ring, theirs, zygote)
        os.close(ring)
        theirs.close()
        self.pidfd = os.pidfd_open(pid)

    def cast(self, memory_bytes: int, uid: int, request: int, reply: int) -> int:
        """Have a child made.

        Args:
            memory_bytes: limit of its address space.
            uid: the uid that it becomes, where the plan says so.
            request: the pipe that its requests come in by.
            reply: the pipe that its replies leave by.

        Returns:
            Its pid.

        Raises:
            OSError: there is none, and why.
        """
        self._draw_pid()
        pipes = array.array("i", (request, reply)).tobytes()
        rights = [(_SOL_SOCKET, _SCM_RIGHTS, pipes)]
        self._desk.sendmsg([_TERMS.pack(memory_bytes, uid)], rights)
        os.write(self._bell, _RING)
        if not self._poll.poll(_ANSWER_MS):
            # It may still come, and would be taken for the next one.
            raise SystemExit("a child that was forked did not answer")
        answer, ancillary, _, _ = self._desk.recvmsg(_FAILED.size, 64)
        if answer != _HERE:
            code = _FAILED.unpack(answer)[0] if len(answer) == _FAILED.size else 0
            raise OSError(code, "no child could be forked")
        return _sender(ancillary)

    def _draw_pid(self) -> None:
        """Have the kernel give the next child a pid that says nothing of how many there were."""
        if self._pids >= 0:
            draw = int.from_bytes(os.urandom(8), "little") % _PID_RANGE
            with contextlib.suppress(OSError):
                os.pwrite(self._pids, b"%d" % (_PID_FIRST + draw), 0)


def open_pids(found: Facilities) -> int:
    """Open what sets a pid namespace's next pid, while there is a `/proc`; -1 where there is none.

    Without it pids count up, and a child that reads its own knows how many came before it.
    """
    if "pid" not in found.namespaces:
        return -1
    try:
        pids = os.open("/proc/sys/kernel/ns_last_pid", os.O_WRONLY | os.O_CLOEXEC)
    except OSError as problem:
        found.problems["pids"] = f"children's pids can't be drawn: {problem}"
        return -1
    try:
        os.pwrite(pids, b"%d" % _PID_FIRST, 0)
    except OSError as problem:
        found.problems["pids"] = f"children's pids can't be drawn: {problem}"
        os.close(pids)
        return -1
    return pids


def _sender(ancillary: list[tuple[int, int, bytes]]) -> int:
    """Who sent a message, by the kernel's account and in this process's own namespace."""
    for _, kind, data in ancillary:
        if kind == _SCM_CREDENTIALS:
            return int(_CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0])
    raise OSError(0, "the kernel did not say which child answered")


def _stand(plan: Plan, ring: int, desk: Any, zygote: int) -> None:
    """Be the mold: one fork for each ring of the bell, until there is nobody to ring it."""
    try:
        kernel.die_with_parent(signal.SIGKILL)
        if os.getppid() != zygote:
            return
        _let_go({ring, desk.fileno(), plan.ruleset})
        # The interpreter counts how often code has run until it has fitted it to its use, and
        # children would read there how many came before them: so it is fitted before the first.
        practice, bell = os.pipe()
        os.write(bell, _RING * _PRACTICE)
        os.set_blocking(practice, False)
        # It leaves by an exception, since Python 3.13 remembers a branch that went another way.
        with contextlib.suppress(BlockingIOError):
            _fork_at_each_ring(practice, kernel.FORK_NOTHING, plan, desk)
        os.close(practice)
        os.close(bell)
        _fork_at_each_ring(ring, kernel.FORK_BESIDE, plan, desk)
    finally:
        os._exit(0)


def _fork_at_each_ring(ring: int, call: tuple[int, ...], plan: Plan, desk: Any) -> None:
    # The next child is a copy of this process: nothing here may keep a trace of the last one, be
    # it a local name, an object freed out of order, or code that Python goes on fitting.
    while len(os.read(ring, 1)) > 0:
        try:
            if kernel.fork_beside(call) == 0:
                _hatch(plan, desk)
        except OSError as problem:
            desk.recv(_TERMS.size)
            desk.send(_FAILED.pack(problem.errno or 0))


def _let_go(kept: set[int]) -> None:
    """Close every descriptor but a few: the zygote's own ends must not live on in its mold."""
    first = 0
    for descriptor in [*sorted(one for one in kept if one >= 0), 1 << 20]:
        os.closerange(first, descriptor)
        first = descriptor + 1


def _hatch(plan: Plan, desk: Any) -> None:
    """Be a new child: take what is on the desk, say so, lock down, serve."""
    try:
        terms, ancillary, _, _ = desk.recvmsg(_TERMS.size, 64)
        memory_bytes, uid = _TERMS.unpack(terms)
        pipes = array.array("i")
        pipes.frombytes(ancillary[0][2][: _PIPES * _INT])
        desk.send(_HERE)
        apply(plan, pipes[0], pipes[1], uid=uid, memory_bytes=memory_bytes)
        from spade_runtime.sandbox.child import main

        main()
    finally:
        os._exit(1)
