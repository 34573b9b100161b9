"""The trainer's half of a zygote: executes it, orders children, learns how they ended."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import threading
import time
from array import array
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spade_runtime.errors import HostError
from spade_runtime.sandbox import cgroups, launch
from spade_runtime.sandbox.cgroups import MemoryGroup
from spade_runtime.sandbox.facilities import Facilities
from spade_runtime.sandbox.requests import FORGET, REPORT, REQUEST, SPAWN, STATUS

START_SECONDS = 60.0
ANSWER_SECONDS = 30.0
_SETTLING_FORKS = 4
_UID_FIRST, _UID_BLOCKS, _UID_BLOCK = 1_000_000_000, 200_000, 4096


@dataclass(slots=True)
class Hatchling:
    """One forked child, blank and locked down.

    Attributes:
        inner: its pid in the zygote's namespace, by which the zygote knows it.
        pidfd: a handle that can't be mistaken for another process.
        requests: write end of its request pipe, non-blocking.
        replies: read end of its reply pipe, non-blocking.
        pid: its pid here, for `/proc` and the processor clock. It stays its own until it is
            reaped, which its owner asks for.
        uid: the uid it was given.
        reaped: it has ended and its status was told, so that its pid may be another's by now.
    """

    inner: int
    pidfd: int
    requests: int
    replies: int
    pid: int
    uid: int
    reaped: bool = False

    def kill(self) -> None:
        """End the process; does nothing where it has ended already."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def close(self) -> None:
        """Close the three descriptors."""
        for descriptor in (self.pidfd, self.requests, self.replies):
            os.close(descriptor)


class Nursery:
    """One zygote and the children forked from it. Thread-safe.

    Args:
        layers: layers of isolation to put on, of `facilities.LAYERS`.
        program: the seccomp filter as BPF.
        hash_seed: the children's PYTHONHASHSEED.
        preload: modules that children can import beside those of the contract.
        memory_mib: what a child kept ready may use.
        ready: children to keep ready.
        total_mib: memory of the zygote and its children together, where a control group can be
            had for it; None for no such limit.
        clock_shift: seconds by which the children's real monotonic clock is ahead.
        uids: children that may live at once, each with its own uid where the pool runs as root.

    Raises:
        HostError: the zygote did not start.
    """

    def __init__(
        self,
        *,
        layers: frozenset[str],
        program: bytes,
        hash_seed: int,
        preload: tuple[str, ...],
        memory_mib: int,
        ready: int = 1,
        total_mib: int | None = None,
        clock_shift: int = 0,
        uids: int = _UID_BLOCK,
    ) -> None:
        # Reentrant: a child that Python collects is forgotten from wherever that happens.
        self._lock = threading.RLock()
        self._memory_mib = memory_mib
        self._want_ready = ready
        first = _UID_FIRST + secrets.randbelow(_UID_BLOCKS) * _UID_BLOCK
        self._uids = list(range(first, first + min(uids, _UID_BLOCK)))
        self._ordered: deque[int] = deque()
        self._ready: deque[Hatchling] = deque()
        self._endings: dict[int, int] = {}
        self._closed = False
        self._lost = False
        self.spawned = 0
        self.gone = 0
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        with theirs:
            self._process = subprocess.Popen(
                launch.command(theirs.fileno()),
                env=launch.environment(hash_seed),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._group: MemoryGroup | None = None
        try:
            # The zygote waits for its configuration, so all that it forks begins in the group.
            kind = cgroups.find() if total_mib is not None else None
            if kind is not None and total_mib is not None:
                self._group = MemoryGroup(kind, total_mib)
                self._group.add(self._process.pid)
            report = self._configure(
                {
                    "layers": sorted(layers),
                    "program": program.hex(),
                    "preload": preload,
                    "uid": first,
                    "clock_shift": clock_shift,
                }
            )
        except BaseException:
            self.close()
            raise
        self._settle()
        self.facilities = Facilities(**report["facilities"])
        self.missing: list[str] = report["missing"]

    def _configure(self, config: dict[str, Any]) -> dict[str, Any]:
        self._socket.settimeout(START_SECONDS)
        try:
            self._socket.send(json.dumps(config).encode())
            answer = self._socket.recv(65536)
        except OSError as problem:
            answer = json.dumps({"error": str(problem)}).encode()
        report: dict[str, Any] = json.loads(answer) if answer else {"error": "it ended"}
        stderr = self._process.stderr
        assert stderr is not None
        with stderr:
            if "error" in report:
                self._process.kill()
                said = stderr.read().decode(errors="replace").strip().splitlines()
                detail = f" ({said[-1]})" if said else ""
                raise HostError(f"the sandbox's zygote did not start: {report['error']}{detail}")
        self._socket.settimeout(ANSWER_SECONDS)
        return report

    def _settle(self) -> None:
        """Fork a few children for nothing: from then on each fork finds the same heap."""
        for _ in range(_SETTLING_FORKS):
            hatchling = self._fork_now(self._memory_mib)
            self.forget(hatchling)
            hatchling.close()
        self.spawned = self.gone = 0

    @property
    def alive(self) -> bool:
        """Whether the zygote still runs."""
        return not self._closed and not self._lost and self._process.poll() is None

    @property
    def grouped(self) -> bool:
        """Whether a control group holds the memory of all together."""
        return self._group is not None

    @property
    def process_id(self) -> int:
        """Pid of the outermost process, which everything else descends from."""
        return self._process.pid

    def take(self, memory_mib: int) -> Hatchling:
        """Give out a child that nobody used; one more is ordered in its place.

        Raises:
            HostError: the zygote is gone, or could not fork.
        """
        with self._lock:
            if memory_mib != self._memory_mib:
                return self._fork_now(memory_mib)
            if not self._ready and not self._ordered:
                self._order(self._memory_mib)
            while not self._ready:
                self._receive()
            hatchling = self._ready.popleft()
            while self._uids and len(self._ready) + len(self._ordered) < self._want_ready:
                self._order(self._memory_mib)
            return hatchling

    def _fork_now(self, memory_mib: int) -> Hatchling:
        while self._ordered:
            self._receive()
        before = len(self._ready)
        self._order(memory_mib)
        while len(self._ready) == before:
            self._receive()
        return self._ready.pop()

    def _order(self, memory_mib: int) -> None:
        if not self._uids:
            raise HostError("too many environments live at once; close sessions that are done")
        # Drawn: uids in a row would tell a child how many came before it.
        place = secrets.randbelow(len(self._uids))
        self._uids[place], self._uids[-1] = self._uids[-1], self._uids[place]
        uid = self._uids.pop()
        self._ordered.append(uid)
        self._send(SPAWN, memory_mib, uid)

    def ending(self, hatchling: Hatchling) -> int | None:
        """Wait for a child that is ending, and say how.

        Returns:
            The wait status, or None where the zygote is gone.
        """
        if not wait_readable(hatchling.pidfd, ANSWER_SECONDS):
            return None
        with self._lock:
            try:
                self._send(REPORT, hatchling.inner)
                while hatchling.inner not in self._endings:
                    self._receive()
            except HostError:
                return None
            self._given_back(hatchling)
            return self._endings.pop(hatchling.inner)

    def forget(self, hatchling: Hatchling) -> None:
        """End a child and have the zygote reap it."""
        with self._lock, contextlib.suppress(HostError):
            self.gone += 1
            if not self._closed and not hatchling.reaped:
                self._send(FORGET, hatchling.inner)
                self._given_back(hatchling)

    def _given_back(self, hatchling: Hatchling) -> None:
        hatchling.reaped = True
        # Requests are answered in order: the uid is free before anybody can get it again.
        self._uids.append(hatchling.uid)

    def _send(self, letter: bytes, number: int, uid: int = 0) -> None:
        try:
            self._socket.send(REQUEST.pack(letter, number, uid))
        except OSError as problem:
            self._lost = True
            raise HostError(f"the sandbox's zygote is gone: {problem}") from problem

    def _receive(self) -> None:
        try:
            data, ancillary, _, _ = self._socket.recvmsg(
                STATUS.size, socket.CMSG_SPACE(3 * array("i").itemsize), socket.MSG_CMSG_CLOEXEC
            )
        except OSError as problem:
            self._lost = True
            raise HostError(f"the sandbox's zygote does not answer: {problem}") from problem
        if not data:
            self._lost = True
            raise HostError("the sandbox's zygote is gone")
        letter, inner, status = STATUS.unpack(data)
        if letter == REPORT:
            self._endings[inner] = status
            return
        uid = self._ordered.popleft()
        if letter != SPAWN:
            self._uids.append(uid)
            raise HostError(f"the sandbox could not fork a child: {os.strerror(status)}")
        descriptors = array("i")
        for _, _, packed in ancillary:
            descriptors.frombytes(packed[: len(packed) - len(packed) % descriptors.itemsize])
        if len(descriptors) != 3:
            for descriptor in descriptors:
                os.close(descriptor)
            self._send(FORGET, inner)
            self._uids.append(uid)
            raise HostError(
                "this process has no descriptors left for another child; raise the limit "
                "(ulimit -n) or close sessions that are done"
            )
        pidfd, requests, replies = descriptors
        os.set_blocking(requests, False)
        os.set_blocking(replies, False)
        self._ready.append(Hatchling(inner, pidfd, requests, replies, _pid_of(pidfd), uid))
        self.spawned += 1

    def close(self) -> None:
        """End the zygote and with it every child; may be called twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            with contextlib.suppress(HostError):
                self._socket.settimeout(5.0)
                while self._ordered:
                    self._receive()
            for hatchling in self._ready:
                hatchling.close()
            self._ready.clear()
            self._socket.close()
        self._process.kill()
        self._process.wait()
        if self._group is not None:
            self._group.close()

    def pids(self) -> list[int]:
        """Pids of the children kept ready."""
        with self._lock:
            return [hatchling.pid for hatchling in self._ready]


def _pid_of(pidfd: int) -> int:
    """The pid behind a pidfd, as this process's own `/proc` counts."""
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "Pid":
            return int(value)
    raise HostError("the kernel does not tell a pidfd's pid; a kernel of at least 5.4 does")


def wait_readable(descriptor: int, seconds: float) -> bool:
    """Whether a descriptor becomes readable in time."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    end = time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        if poll.poll(max(0, int(left * 1000))):
            return True
        if left <= 0:
            return False
