"""The Linux calls that Python 3.11 has no name for, through ctypes.

Every function raises `OSError` with the call's name, so that what is missing can be named. The
numbers are the kernel's own and the same on every architecture; calls whose number differs go
through libc's wrappers.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct

CLONE_PARENT = 0x00008000
CLONE_NEWTIME = 0x00000080
CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 0x2

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_CAPBSET_DROP = 24
_PR_SET_SECUREBITS = 28
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECCOMP_MODE_FILTER = 2
# Every securebit with its lock, so that a uid of 0 means nothing any more.
_SECUREBITS_LOCKED = 0xEF
_CAPABILITY_VERSION_3 = 0x20080522

_SYS_LANDLOCK_CREATE_RULESET = 444
_SYS_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_VERSION = 1

# Older than the numbers that all architectures share: clone() and getppid().
_SYS_CLONE, _SYS_GETPPID = {
    "x86_64": (56, 110),
    "aarch64": (220, 173),
    "riscv64": (220, 173),
    "loongarch64": (220, 173),
    "ppc64le": (120, 64),
}.get(os.uname().machine if hasattr(os, "uname") else "", (-1, -1))

_libc = ctypes.CDLL(None, use_errno=True)
# Without giving up the interpreter's lock, which a fork would have to find as it was.
_clone = ctypes.PyDLL(None, use_errno=True)["syscall"]
_clone.restype = ctypes.c_long
# Plain numbers: ctypes makes an object of any other argument, and frees them in another order
# than they came, so that every second fork would find other free lists.
FORK_BESIDE = (_SYS_CLONE, CLONE_PARENT | int(signal.SIGCHLD), 0, 0, 0, 0)
FORK_NOTHING = (_SYS_GETPPID, 0, 0, 0, 0, 0)
"""What `fork_beside` may be called with: to fork, and to practise the call."""


def _checked(result: int, name: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def _prctl(name: str, option: int, *arguments: int) -> None:
    words = [ctypes.c_ulong(argument) for argument in (*arguments, 0, 0, 0, 0)[:4]]
    _checked(_libc.prctl(ctypes.c_int(option), *words), name)


def unshare(flags: int) -> None:
    """Move the calling process into new namespaces."""
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def fork_beside(call: tuple[int, ...]) -> int:
    """Fork a child of this process's own parent, which is the one to reap it.

    Python's hooks are left out (its global `random` is not seeded anew, for one), and nothing is
    kept: the next child finds the memory that this one found. The process must have one thread.

    Args:
        call: `FORK_BESIDE`; with `FORK_NOTHING` there is no child and the result is no pid.

    Returns:
        0 in the child, its pid here.

    Raises:
        OSError: no process could be made, or this architecture's number is not known.
    """
    return _checked(_clone(*call), "clone")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """Mount a file system, or change one that is mounted."""
    _checked(
        _libc.mount(
            source.encode() if source is not None else None,
            target.encode(),
            kind.encode() if kind is not None else None,
            ctypes.c_ulong(flags),
            data.encode() or None,
        ),
        "mount",
    )


def unmount(target: str, flags: int) -> None:
    """Take a mounted file system away."""
    _checked(_libc.umount2(target.encode(), ctypes.c_int(flags)), "umount2")


def pivot_root(new: str, old: str) -> None:
    """Make the mount `new` the root and put the old root at `old`."""
    _checked(_libc.pivot_root(new.encode(), old.encode()), "pivot_root")


def die_with_parent(signal: int) -> None:
    """Have the kernel send a signal when the parent's thread ends; a change of uid clears it."""
    _prctl("PR_SET_PDEATHSIG", _PR_SET_PDEATHSIG, signal)


def set_dumpable(value: bool) -> None:
    """Let, or forbid, processes of the same uid trace this one and read its memory."""
    _prctl("PR_SET_DUMPABLE", _PR_SET_DUMPABLE, int(value))


def no_new_privileges() -> None:
    """Give up gaining rights by exec, for good."""
    _prctl("PR_SET_NO_NEW_PRIVS", _PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Empty all five capability sets and lock the securebits, also for a uid of 0."""
    _prctl("PR_CAP_AMBIENT", _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    for capability in range(64):
        try:
            _prctl("PR_CAPBSET_DROP", _PR_CAPBSET_DROP, capability)
        except OSError:
            if capability == 0:
                raise
            break  # past the last capability that this kernel knows
    _prctl("PR_SET_SECUREBITS", _PR_SET_SECUREBITS, _SECUREBITS_LOCKED)
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITY_VERSION_3, 0), 8)
    data = ctypes.create_string_buffer(24)
    _checked(_libc.capset(header, data), "capset")


def load_filter(program: bytes) -> None:
    """Load a seccomp filter given as BPF instructions of eight bytes each."""
    code = ctypes.create_string_buffer(program, len(program))

    class _Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    header = _Program(len(program) // 8, ctypes.addressof(code))
    _prctl("PR_SET_SECCOMP", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(header))


def landlock_abi() -> int:
    """The version of Landlock that the kernel has, 0 where it has none."""
    return max(0, int(_libc.syscall(ctypes.c_long(_SYS_LANDLOCK_CREATE_RULESET), None, 0, 1)))


def landlock_ruleset(abi: int) -> int:
    """Make a ruleset that allows nothing it can name: files, TCP, signals, abstract sockets.

    Returns:
        A descriptor; `landlock_restrict` with it binds the calling process.
    """
    files = 13 + (abi >= 2) + (abi >= 3) + (abi >= 5)
    words = [(1 << files) - 1]
    if abi >= 4:
        words.append(0b11)
    if abi >= 6:
        words.append(0b11)
    attributes = ctypes.create_string_buffer(struct.pack(f"{len(words)}Q", *words), 8 * len(words))
    call = ctypes.c_long(_SYS_LANDLOCK_CREATE_RULESET)
    size = ctypes.c_size_t(8 * len(words))
    return _checked(int(_libc.syscall(call, attributes, size, 0)), "landlock_create_ruleset")


def landlock_restrict(ruleset: int) -> None:
    """Bind the calling process to a ruleset; needs no_new_privs."""
    call = ctypes.c_long(_SYS_LANDLOCK_RESTRICT_SELF)
    _checked(int(_libc.syscall(call, ctypes.c_int(ruleset), 0)), "landlock_restrict_self")
