"""Environments that look for their neighbours: to see them, to talk to them, or to end them."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.wire import RawStep

pytestmark = pytest.mark.hostile


def number(name: str) -> int:
    import pyseccomp

    return int(pyseccomp.resolve_syscall(pyseccomp.system_arch(), name))


def said(item: object) -> str:
    assert isinstance(item, RawStep) and isinstance(item.observation, str), item
    return item.observation


def test_hostile_clock_of_another_process_is_refused(
    bare: SandboxPool,
    opened: Callable[..., RawChild],
    write: Callable[..., str],
    by_number: str,
    healthy: str,
) -> None:
    # The kernel tells everybody how much any process of the namespace has computed; whoever asks
    # for every pid in turn learns who lives there.
    step = """
    number, *pids = map(int, action.split())
    room = ctypes.addressof(ctypes.create_string_buffer(16))
    others = {call(number, ~pid << 3 | kind, room) for pid in pids for kind in (0, 1, 2, 6)}
    said = str((others, [call(number, clock, room) for clock in (0, 1, 2, 3, 4, 7)]))
    """
    with (
        opened(bare, healthy) as other,
        opened(bare, write(head=by_number, step=step)) as child,
    ):
        pids = {1, 2, other._child.inner, child._child.inner, *range(3, 200)}
        action = " ".join(map(str, [number("clock_gettime"), *pids]))
        assert said(child.step([0], [action])[0]) == str(({"EPERM"}, ["ok"] * 6))


def test_hostile_bell_between_children_is_refused(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], by_number: str
) -> None:
    # The code of libc is one and the same page for all: a futex there, if it were shared, would
    # wake whoever waits in another child, and say how many those were.
    step = """
    futex = int(action)
    word = ctypes.cast(libc.qsort, ctypes.c_void_p).value & ~3
    own = ctypes.addressof(ctypes.create_string_buffer(8))
    shared = [call(futex, word, operation, 1, 0) for operation in (0, 1, 1 | 256, 9, 10)]
    waits = [call(futex, own, operation | 128, 1) for operation in (2, 3, 5, 6, 7, 8, 11, 12, 13)]
    said = str((set(shared), set(waits), call(futex, own, 1 | 128, 1)))
    """
    with opened(bare, write(head=by_number, step=step)) as child:
        seen = said(child.step([0], [str(number("futex"))])[0])
    assert seen == str(({"EPERM"}, {"EPERM"}, "ok"))


def test_hostile_advice_that_reaches_beyond_one_s_own_memory_is_refused(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], by_number: str
) -> None:
    step = """
    libc.mmap.restype = ctypes.c_void_p
    place = libc.mmap(None, 8192, 3, 0x22, -1, 0)
    advise = int(action)
    said = str([kind for kind in range(256) if call(advise, place, 4096, kind) != "EPERM"])
    """
    with opened(bare, write(head=by_number, step=step)) as child:
        # MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE (which a kernel may not have).
        seen = said(child.step([0], [str(number("madvise"))])[0])
    assert seen == "[4, 8, 14]"


def test_hostile_memory_from_a_common_store_is_refused(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], by_number: str
) -> None:
    # MAP_SHARED, MAP_LOCKED and MAP_HUGETLB, each of them with MAP_ANONYMOUS; then without.
    step = """
    take = int(action)
    flags = (0x21, 0x23, 0x2022, 0x40022, 0x22)
    said = str([call(take, 0, 4096, 3, kind, -1, 0) for kind in flags])
    """
    with opened(bare, write(head=by_number, step=step)) as child:
        seen = said(child.step([0], [str(number("mmap"))])[0])
    assert seen == str([*["EPERM"] * 4, "ok"])


def test_hostile_abstract_socket_is_out_of_reach_by_landlock_alone(
    opened: Callable[..., RawChild], write: Callable[..., str], by_number: str
) -> None:
    # No file stands for it, so neither an empty root nor permissions would keep a child from it.
    name = f"spade-{secrets.token_hex(8)}"
    step = """
    handle = libc.socket(1, 1, 0)
    address = bytes([1, 0, 0]) + action.encode()
    ctypes.set_errno(0)
    result = libc.connect(handle, address, len(address))
    said = "connected" if result == 0 else errno.errorcode[ctypes.get_errno()]
    """
    seen = {}
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{name}")
        server.listen()
        for layers in (frozenset[str](), frozenset({"landlock"}), frozenset({"namespaces"})):
            with SandboxPool(level="best_effort", policy="off", layers=layers) as pool:
                abi = pool.facilities.landlock_abi
                with opened(pool, write(head=by_number, step=step)) as child:
                    seen[layers] = said(child.step([0], [name])[0])
                if layers == {"landlock"} and abi < 6:
                    pytest.skip(f"Landlock ABI {abi} knows no abstract sockets; 6 does")
    assert seen[frozenset()] == "connected"
    assert seen[frozenset({"landlock"})] == "EPERM"
    # The network namespace holds abstract names too.
    assert seen[frozenset({"namespaces"})] == "ECONNREFUSED"


def test_hostile_kill_of_everything_leaves_everybody_alive(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], healthy: str
) -> None:
    step = """
    sent = 0
    for target in [os.getppid(), 1, -1, *range(2, 400)]:
        try:
            os.kill(target, 9)
            sent += 1
        except OSError:
            pass
    said = str(sent)
    """
    with (
        opened(bare, healthy) as other,
        opened(bare, write(head="import os", step=step)) as child,
    ):
        assert said(child.step([0], ["x"])[0]) == "0"
        assert said(other.step([0], ["go"])[0]) == "go is 1"
        assert bare.alive


def test_hostile_neighbours_have_different_uids(
    bare: SandboxPool, opened: Callable[..., RawChild], healthy: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give every child a uid of its own")
    with opened(bare, healthy) as one, opened(bare, healthy) as other:
        assert Path(f"/proc/{one.pid}").stat().st_uid != Path(f"/proc/{other.pid}").stat().st_uid
