"""The process that children are forked from: executed clean, locked in, and nearly deaf.

The trainer executes it (a fork would carry its secrets and its threads) with a scrubbed
environment. It imports all that children may need, enters its namespaces, becomes their pid 1
(so that its death ends every child), moves into an empty read-only root, and then serves requests
of nine bytes: a letter and two numbers.

    S memory uid   make a child with so many MiB; answers "S" + pid with three descriptors
    R pid          reap a child that has ended; answers "R" + pid + wait status
    K pid          end a child and reap it; no answer
"""

from __future__ import annotations

import array
import contextlib
import gc
import json
import os
import resource
import select
import signal
import sys
from typing import Any

from spade_runtime.sandbox import kernel
from spade_runtime.sandbox.facilities import Facilities
from spade_runtime.sandbox.lockdown import LOCKDOWN_FAILED, STEPS, Plan, apply
from spade_runtime.sandbox.mold import Mold, open_pids
from spade_runtime.sandbox.preload import preload, shut, warm_up
from spade_runtime.sandbox.requests import (
    CONFIG_BYTES_MAX,
    FORGET,
    REPORT,
    REQUEST,
    SPAWN,
    STATUS,
)

_NAMESPACES = (
    ("mount", kernel.CLONE_NEWNS),
    ("pid", kernel.CLONE_NEWPID),
    ("net", kernel.CLONE_NEWNET),
    ("ipc", kernel.CLONE_NEWIPC),
    ("uts", kernel.CLONE_NEWUTS),
)
_TRIAL_MEMORY = 1 << 40


class Zygote:
    """The serving process. It keeps no account of its children, the trainer does.

    Args:
        control: the SEQPACKET socket to the trainer (a `_socket.socket`).
        trainer: pidfd of the trainer, so that its end is seen even where others hold its socket.
        mold: makes the children, which are this process's own.
    """

    def __init__(self, control: Any, trainer: int, mold: Mold) -> None:
        self._control = control
        self._mold = mold
        self._vital = (trainer, mold.pidfd)
        self._poll = select.poll()
        for descriptor in (control.fileno(), *self._vital):
            self._poll.register(descriptor, select.POLLIN)

    def serve(self) -> None:
        """Answer until the trainer goes, or the mold does."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor in self._vital:
                    return
            request = self._control.recv(REQUEST.size)
            if not request:
                return
            letter, number, uid = REQUEST.unpack(request)
            if letter == SPAWN:
                self._spawn(number << 20, uid)
            elif letter == REPORT:
                self._control.send(STATUS.pack(REPORT, number, _reaped(number)))
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
                _reaped(number)

    def _spawn(self, memory_bytes: int, uid: int) -> None:
        request_read, request_write = os.pipe()
        reply_read, reply_write = os.pipe()
        try:
            pid = self._mold.cast(memory_bytes, uid, request_read, reply_write)
            pidfd = os.pidfd_open(pid)
            _send_descriptors(
                self._control, STATUS.pack(SPAWN, pid, 0), (pidfd, request_write, reply_read)
            )
            os.close(pidfd)
        except OSError as problem:
            self._control.send(STATUS.pack(FORGET, 0, problem.errno or 0))
        finally:
            for descriptor in (request_read, request_write, reply_read, reply_write):
                os.close(descriptor)


def _reaped(pid: int) -> int:
    """Wait status of a child that has ended, or is about to."""
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return 0


def _send_descriptors(control: Any, data: bytes, descriptors: tuple[int, ...]) -> None:
    packed = array.array("i", descriptors).tobytes()
    control.sendmsg([data], [(1, 1, packed)])  # SOL_SOCKET, SCM_RIGHTS


def _separate(found: Facilities, layers: set[str]) -> None:
    """Enter the namespaces: directly as root, through a user namespace otherwise."""
    if "namespaces" not in layers:
        return
    everything = 0
    for _, flag in _NAMESPACES:
        everything |= flag
    try:
        kernel.unshare(everything)
    except OSError as denied:
        uid, gid = os.geteuid(), os.getegid()
        try:
            kernel.unshare(kernel.CLONE_NEWUSER | everything)
            _map_ids(uid, gid)
        except OSError as problem:
            found.problems["namespaces"] = f"{denied}; with a user namespace: {problem}"
            return
        found.user_namespace = True
    found.namespaces = [name for name, _ in _NAMESPACES]


def _shift_clock(found: Facilities, seconds: int) -> None:
    """Give the children another monotonic clock, as after another start of the machine."""
    if not seconds:
        return
    try:
        kernel.unshare(kernel.CLONE_NEWTIME)
        with open("/proc/self/timens_offsets", "w") as file:  # noqa: PTH123
            file.write(f"monotonic {seconds} 0\nboottime {seconds} 0\n")
    except OSError as problem:
        found.problems["clock"] = str(problem)


def _map_ids(uid: int, gid: int) -> None:
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
            file.write(text)


def _empty_root(found: Facilities) -> None:
    """Leave the file system behind for an empty, read-only one."""
    if "mount" not in found.namespaces:
        return
    try:
        kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
        kernel.mount("none", "/tmp", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=4k")
        os.chdir("/tmp")
        # The same place for both puts the old root on top of the new one, to be taken off.
        kernel.pivot_root(".", ".")
        kernel.unmount(".", kernel.MNT_DETACH)
        os.chdir("/")
        flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
        kernel.mount(None, "/", None, kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | flags)
        found.empty_root = True
    except OSError as problem:
        found.problems["empty_root"] = str(problem)


def _plan(found: Facilities, layers: set[str], program: bytes) -> Plan:
    """Decide what children put on, and try what can be tried without a child."""
    plan = Plan(rlimits="rlimits" in layers, undumpable="uid" in layers, program=program)
    plan.drop_capabilities = found.user_namespace
    plan.unique_uid = "uid" in layers and os.geteuid() == 0 and not found.user_namespace
    if "landlock" in layers:
        abi = kernel.landlock_abi()
        try:
            plan.ruleset = kernel.landlock_ruleset(abi) if abi else -1
            found.landlock_abi = abi
        except OSError as problem:
            found.problems["landlock"] = str(problem)
        if not abi:
            found.problems["landlock"] = "the kernel has no Landlock, or it is switched off"
    return plan


def _settle(found: Facilities, plan: Plan, uid: int) -> None:
    """Lock trial children down, dropping a layer that fails, until one gets through."""
    while True:
        status = _trial(plan, uid)
        if status == 0:
            break
        failed = STEPS[status - LOCKDOWN_FAILED] if status >= LOCKDOWN_FAILED else "unknown"
        found.problems[failed] = f"a child could not apply it (step {failed!r})"
        if failed == "seccomp":
            plan.program = b""
        elif failed == "landlock":
            plan.ruleset, found.landlock_abi = -1, 0
        elif failed == "uid":
            plan.unique_uid = False
        elif failed == "rlimits":
            plan.rlimits = False
        else:
            raise RuntimeError(f"a child could not be locked down: step {failed!r} failed")
    found.seccomp = bool(plan.program)
    found.unique_uid = plan.unique_uid
    found.undumpable = plan.undumpable
    found.rlimits = plan.rlimits


def _trial(plan: Plan, uid: int) -> int:
    request_read, request_write = os.pipe()
    reply_read, reply_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        apply(plan, request_read, reply_write, uid=uid, memory_bytes=_TRIAL_MEMORY)
        os._exit(0)
    for descriptor in (request_read, request_write, reply_read, reply_write):
        os.close(descriptor)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else LOCKDOWN_FAILED + len(STEPS) - 1


def _become_first(found: Facilities) -> None:
    """Fork into the new pid namespace; the outer process only waits."""
    outer = os.pidfd_open(os.getpid())
    pid = os.fork()
    if pid:
        os.close(outer)
        os.closerange(3, 1 << 20)
        _, status = os.waitpid(pid, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0x7F)
    kernel.die_with_parent(signal.SIGKILL)
    if select.select([outer], [], [], 0)[0]:
        os._exit(0)  # it ended before the line above
    os.close(outer)


def _ignore_terminal() -> None:
    # Ctrl-C reaches the whole foreground group; the trainer decides when children go.
    for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(kind, signal.SIG_IGN)


def _raise_descriptors() -> None:
    # One pidfd for each live child, and the four ends of two pipes for a moment.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main(control_fd: int) -> None:
    """Start up, report, and serve.

    Args:
        control_fd: descriptor of the control socket.
    """
    import _socket

    control = _socket.socket(fileno=control_fd)
    desk = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    trainer = os.pidfd_open(os.getppid())
    _ignore_terminal()
    _raise_descriptors()
    try:
        config = json.loads(control.recv(CONFIG_BYTES_MAX))
        layers = set(config["layers"])
        found = Facilities()
        _separate(found, layers)
        _shift_clock(found, config["clock_shift"])
        _become_first(found)
        missing = preload(config["preload"])
        warm_up()
        pids = open_pids(found)
        _empty_root(found)
        plan = _plan(found, layers, bytes.fromhex(config["program"]))
        _settle(found, plan, config["uid"])
        shut()
        gc.collect()
        gc.freeze()
        gc.disable()
        mold = Mold(plan, desk, pids)
        report = {"facilities": found.to_dict(), "missing": missing, "pid": os.getpid()}
        control.send(json.dumps(report).encode())
    except Exception as problem:
        control.send(json.dumps({"error": f"{type(problem).__name__}: {problem}"}).encode())
        sys.exit(1)
    Zygote(control, trainer, mold).serve()
    os._exit(0)
