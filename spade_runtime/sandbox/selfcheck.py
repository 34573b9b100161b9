"""A conformance suite for the isolation: each layer switched on alone, then all together.

`spade doctor --self-check` runs it, and so do the tests. Every probe is made by an environment that
runs without the static policy in a child of its own, so that the layers have to hold by themselves.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spade_runtime.errors import EnvFault, HostError
from spade_runtime.sandbox.facilities import LANDLOCK_SIGNALS_ABI, LAYERS, Facilities
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.wire import RawStep

PROBES: tuple[str, ...] = ("open", "write", "connect", "kill", "environ", "fork")
"""What an attacker would try first, in the order of the table."""

_LANDLOCK_TCP_ABI = 4
# How long the end of a zygote may take to show.
_DEATH_SECONDS = 1.0

# It reaches libc through the harness's own module: `ctypes` and `socket` can't be imported there.
_PROBE = r'''
import errno, os, struct, sys

libc = sys.modules["spade_runtime.sandbox.kernel"]._libc
ctypes = sys.modules["spade_runtime.sandbox.kernel"].ctypes


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


class ProbeEnv(TextEnv):
    """Tries one thing that an environment may not do."""

    skill = "causal_inference"

    def reset(self, seed=None):
        return "Name a probe.", {}

    def step(self, action):
        name, _, argument = action.partition(" ")
        try:
            found = getattr(self, "try_" + name)(argument)
        except OSError as problem:
            found = "refused " + errno.errorcode.get(problem.errno, "?")
        return found, 0.0, False, False, {}

    def try_open(self, path):
        handle = os.open(path, os.O_RDONLY)
        return "allowed " + os.read(handle, 20).decode()

    def try_write(self, path):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(handle, b"here")
        return "allowed"

    def try_connect(self, port):
        handle = checked(libc.socket(2, 1, 0))
        address = struct.pack("=H", 2) + struct.pack(">H", int(port)) + b"\x7f\0\0\1" + bytes(8)
        checked(libc.connect(handle, address, 16))
        return "allowed"

    def try_kill(self, _):
        os.kill(os.getppid() or 1, 9)
        return "sent"

    def try_environ(self, pid):
        handle = os.open("/proc/" + pid + "/environ", os.O_RDONLY)
        return "allowed " + str(len(os.read(handle, 4096)))

    def try_fork(self, _):
        if os.fork() == 0:
            os._exit(0)
        return "allowed"
'''


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe under one choice of layers.

    Attributes:
        layers: the layers that were on; nothing for the control.
        name: what was tried, of `PROBES`.
        stopped: whether it had no effect.
        expected: whether these layers promise to stop it; None where they promise nothing.
        seen: what came of it, in the kernel's word.
    """

    layers: tuple[str, ...]
    name: str
    stopped: bool
    expected: bool | None
    seen: str

    @property
    def ok(self) -> bool:
        """Whether the promise was kept."""
        return self.expected is None or self.stopped == self.expected


def promised(layers: frozenset[str], facilities: Facilities) -> set[str]:
    """The probes that a choice of layers has to stop on this machine."""
    stops: set[str] = set()
    if facilities.seccomp:
        stops |= set(PROBES)
    if facilities.rlimits:
        # No descriptor may be opened beyond the two pipes.
        stops |= {"open", "write", "connect", "environ"}
        if facilities.unique_uid or facilities.user_namespace or os.geteuid() != 0:
            stops.add("fork")  # the limit on processes does not bind root
    if facilities.unique_uid:
        stops |= {"write", "kill", "environ"}
    if facilities.empty_root:
        stops |= {"open", "write", "environ"}
    if "pid" in facilities.namespaces:
        stops.add("kill")
    if "net" in facilities.namespaces:
        stops.add("connect")
    if facilities.landlock_abi:
        stops |= {"open", "write", "environ"}
        if facilities.landlock_abi >= _LANDLOCK_TCP_ABI:
            stops.add("connect")
        if facilities.landlock_abi >= LANDLOCK_SIGNALS_ABI:
            stops.add("kill")
    return stops


def run() -> Iterator[Probe]:
    """Run the suite: a control without any layer, each layer alone, all of them.

    Yields:
        Every probe as it is made. The control has to show that each probe would succeed; without
        it a probe that fails for another reason would pass for a layer that holds.
    """
    everything = frozenset(LAYERS)
    for layers in (frozenset(), *(frozenset({layer}) for layer in LAYERS), everything):
        with SandboxPool(level="best_effort", policy="off", layers=layers) as pool:
            stops = promised(layers, pool.facilities)
            for name in PROBES:
                stopped, seen = _try(name, pool)
                if not layers:
                    expected: bool | None = False
                else:
                    expected = True if name in stops else None
                yield Probe(tuple(sorted(layers)), name, stopped, expected, seen)


def _try(name: str, pool: SandboxPool) -> tuple[bool, str]:
    with _targets() as targets:
        seen = _ask(pool, f"{name} {targets[name]}".strip())
        if name == "kill":
            # A signal that was sent may still have been ignored: what counts is who lives. The
            # answer may also come before the process that it ended is seen to be gone.
            patience = time.monotonic() + _DEATH_SECONDS
            while seen == "sent" and pool.alive and time.monotonic() < patience:
                time.sleep(0.02)
            survived = pool.alive and not seen.startswith("gone")
            return survived, seen if survived else "the zygote died"
        if name == "write":
            return not Path(targets["write"]).exists(), seen
        return not seen.startswith("allowed"), seen


def _ask(pool: SandboxPool, action: str) -> str:
    try:
        with pool.open_raw(_PROBE) as child:
            child.inspect()
            child.load()
            child.reset([0], [1])
            item = child.step([0], [action])[0]
    except EnvFault as fault:
        return f"killed: {fault}"
    except HostError as fault:
        return f"gone: {fault}"
    if isinstance(item, RawStep) and isinstance(item.observation, str):
        return item.observation
    return f"raised: {item}"


@contextlib.contextmanager
def _targets() -> Iterator[dict[str, str]]:
    """Things that would be there to take: a readable file, a listening port, an environment."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        place = Path(folder)
        place.chmod(0o755)
        secret = place / "secret.txt"
        secret.write_text("a secret")
        secret.chmod(0o644)
        yield {
            "open": str(secret),
            "write": str(place / "written.txt"),
            "connect": str(server.getsockname()[1]),
            "kill": "",
            "environ": str(os.getpid()),
            "fork": "",
        }
