"""Pools and small environments for the tests of the sandbox."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spade_runtime.errors import SpadeError
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.spec import Limits

HEALTHY = '''
class CountEnv(TextEnv):
    """Count to three."""

    skill = "mathematical_reasoning"

    def reset(self, seed=None):
        self.seed, self.count = seed, 0
        return f"Seed {seed}: count to three.", {"seed": seed}

    def step(self, action):
        self.count += 1
        done = self.count == 3
        return f"{action} is {self.count}", float(done), done, False, {"count": self.count}

    def solution(self):
        return ["go", "go", "go"]
'''


@pytest.fixture(scope="session")
def healthy() -> str:
    """An environment that does nothing wrong."""
    return HEALTHY


@pytest.fixture(scope="session")
def quick() -> Limits:
    """Limits under which a loop is found soon."""
    return Limits(
        load_seconds=0.4, reset_seconds=0.3, step_seconds=0.3, wall_factor=5, memory_mib=128
    )


@pytest.fixture(scope="session")
def bare(quick: Limits) -> Iterator[SandboxPool]:
    """A pool without the static policy: the isolation has to hold by itself."""
    with SandboxPool(policy="off", limits=quick) as pool:
        yield pool


@pytest.fixture(scope="session")
def guarded() -> Iterator[SandboxPool]:
    """A pool as it is used."""
    with SandboxPool() as pool:
        yield pool


def environment(
    *, head: str = "", reset: str = "", step: str = "", init: str = "", extra: str = ""
) -> str:
    """Write an environment around the given lines of its methods."""

    def body(lines: str) -> str:
        return textwrap.indent(textwrap.dedent(lines).strip() or "pass", " " * 8)

    methods = textwrap.indent(textwrap.dedent(extra).strip(), " " * 4)
    return (
        f"{textwrap.dedent(head)}\n\n"
        "class AttackEnv(TextEnv):\n"
        '    """Attack."""\n\n'
        '    skill = "causal_inference"\n\n'
        f"    def __init__(self):\n{body(init)}\n\n"
        "    def reset(self, seed=None):\n"
        f"        info = {{}}\n{body(reset)}\n"
        '        return "ready", info\n\n'
        "    def step(self, action):\n"
        '        said, reward, info = "none", 0.0, {}\n'
        f"{body(step)}\n"
        "        return said, reward, False, False, info\n\n"
        f"{methods}\n"
    )


@pytest.fixture(scope="session")
def write() -> Callable[..., str]:
    """Writes an environment around the given lines of its methods."""
    return environment


Play = Callable[..., list[Any]]


@pytest.fixture
def play(bare: SandboxPool) -> Play:
    """Plays a source once, and gives every reply, the last one perhaps a fault."""

    def run(source: str, *actions: str, slots: int = 1, **options: Any) -> list[Any]:
        found: list[Any] = []
        places = list(range(slots))
        with bare.open_raw(source, instances=slots, **options) as child:
            try:
                child.inspect()
                loaded = child.load()
                found.append(loaded)
                if loaded.raised is None:
                    found.append(child.reset(places, places))
                    found += [child.step(places, [action] * slots) for action in actions]
            except SpadeError as fault:
                found.append(fault)
        return found

    return run


def ready(pool: SandboxPool, source: str, slots: int = 1, **options: Any) -> RawChild:
    """Open, load and reset."""
    child = pool.open_raw(source, instances=slots, **options)
    assert child.inspect().findings == []
    assert child.load().raised is None
    child.reset(range(slots), range(slots))
    return child


@pytest.fixture(scope="session")
def opened() -> Callable[..., RawChild]:
    """Opens, loads and resets a source in a pool."""
    return ready


# libc and ctypes are found in the harness: neither can be imported in a child.
NATIVE = """
import errno, os, sys
libc = sys.modules["spade_runtime.sandbox.kernel"]._libc
ctypes = sys.modules["spade_runtime.sandbox.kernel"].ctypes

def call(number, *arguments):
    words = [ctypes.c_long(word) for word in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *words)
    return "ok" if result != -1 else errno.errorcode.get(ctypes.get_errno(), "?")
"""


@pytest.fixture(scope="session")
def by_number() -> str:
    """The head of a source that makes system calls by number."""
    return NATIVE
