"""Compiles the allow-list of system calls once, in the parent, by pyseccomp.

Children load the exported BPF themselves, so that neither pyseccomp nor libseccomp lives in them.
"""

from __future__ import annotations

import errno
import functools
import mmap
import os
from typing import Any

from spade_runtime.errors import IsolationUnavailable
from spade_runtime.sandbox.facilities import BEST_EFFORT

REQUEST_FD = 3
REPLY_FD = 4

_FREE = (
    "brk",
    "exit",
    "exit_group",
    "getrandom",
    "gettimeofday",
    "mremap",
    "munmap",
    "restart_syscall",
    "rt_sigreturn",
    "sched_yield",
    "time",
)
# Of these a part is allowed, as far as Python, libc and numpy need it.
_CLOCKS_MAX = 16
"""Clocks below are the machine's or the caller's own; by the others any process that lives here can
be found, and how much it computes."""
_FUTEX_PRIVATE, _FUTEX_REALTIME = 128, 256
_FUTEX_OPERATIONS = (0, 1, 9, 10)
"""Wait and wake, within one process alone: a shared futex on a page of a library that all children
map is a bell between them. Without priority inheritance, whose code in the kernel is intricate."""
_ADVICE = (4, 8, 14)
"""MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE; merging equal pages would tell of the neighbours'."""
_MAP_NEVER = mmap.MAP_SHARED | 0x2000 | 0x4_0000
"""Shared memory, and what all take from one store: MAP_LOCKED and MAP_HUGETLB."""
_INT = 0xFFFF_FFFF
# An honest class never makes these, so the process ends instead of trying again.
_DEADLY = (
    "add_key",
    "bind",
    "bpf",
    "connect",
    "delete_module",
    "execve",
    "execveat",
    "finit_module",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "mount",
    "move_mount",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "pidfd_getfd",
    "pivot_root",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "request_key",
    "setns",
    "socket",
    "socketpair",
    "umount2",
    "unshare",
    "userfaultfd",
)


@functools.lru_cache(maxsize=1)
def allow_list() -> bytes:
    """The filter as BPF: what is named is allowed, the rest fails with EPERM or kills.

    Reading is allowed from the request pipe alone and writing to the reply pipe alone; memory may
    be mapped, but not from a file and never executable; clocks and futexes are the caller's own.

    Raises:
        IsolationUnavailable: libseccomp is missing, or the kernel has not what the filter uses.
    """
    try:
        import pyseccomp as seccomp
    except (ImportError, RuntimeError, OSError) as problem:
        raise IsolationUnavailable(
            f"libseccomp can't be loaded ({problem}); install it (Debian, Ubuntu: apt install "
            f"libseccomp2; Fedora: dnf install libseccomp), or choose {BEST_EFFORT}"
        ) from problem
    try:
        return _exported(_rules(seccomp))
    except OSError as problem:
        raise IsolationUnavailable(
            f"the seccomp filter can't be made ({problem}): this kernel, or the container's own "
            f"filter, has no seccomp() call; use a kernel of at least 4.14 and a container that "
            f"permits seccomp(), or choose {BEST_EFFORT}"
        ) from problem


def _rules(seccomp: Any) -> object:
    rules = seccomp.SyscallFilter(defaction=seccomp.ERRNO(errno.EPERM))
    # Another architecture's numbers (int80, say) would slip past a filter made for this one.
    rules.set_attr(seccomp.Attr.ACT_BADARCH, seccomp.KILL_PROCESS)
    for name in _FREE:
        _add(rules, seccomp.ALLOW, name)
    for name in _DEADLY:
        _add(rules, seccomp.KILL_PROCESS, name)
    arg, equal, masked = seccomp.Arg, seccomp.EQ, seccomp.MASKED_EQ
    _add(rules, seccomp.ALLOW, "read", arg(0, equal, REQUEST_FD))
    _add(rules, seccomp.ALLOW, "write", arg(0, equal, REPLY_FD))
    _add(
        rules,
        seccomp.ALLOW,
        "mmap",
        arg(2, masked, mmap.PROT_EXEC, 0),
        arg(3, masked, mmap.MAP_ANONYMOUS | _MAP_NEVER, mmap.MAP_ANONYMOUS),
    )
    own = arg(0, masked, _INT & ~(_CLOCKS_MAX - 1), 0)
    _add(rules, seccomp.ALLOW, "clock_gettime", own)
    for operation in _FUTEX_OPERATIONS:
        private = arg(1, masked, _INT & ~_FUTEX_REALTIME, _FUTEX_PRIVATE | operation)
        _add(rules, seccomp.ALLOW, "futex", private)
    for advice in _ADVICE:
        _add(rules, seccomp.ALLOW, "madvise", arg(2, masked, _INT, advice))
    _add(rules, seccomp.ALLOW, "mprotect", arg(2, masked, mmap.PROT_EXEC, 0))
    return rules


def _add(rules: object, action: int, name: str, *conditions: object) -> None:
    import pyseccomp as seccomp

    try:
        seccomp.resolve_syscall(seccomp.system_arch(), name)
    except ValueError:
        return  # this architecture, or this libseccomp, has no call of that name: EPERM holds
    rules.add_rule(action, name, *conditions)  # type: ignore[attr-defined]


def _exported(rules: object) -> bytes:
    descriptor = os.memfd_create("spade-filter")
    with os.fdopen(descriptor, "w+b") as file:
        rules.export_bpf(file)  # type: ignore[attr-defined]
        file.seek(0)
        return file.read()
