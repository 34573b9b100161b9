"""Environments that try to tell hinted plays from unhinted ones, or validation from training.

Each hands out all that it can see as its observation. Two arms of a step play in two fresh
children, a validator in a pool of its own: what is seen must be the same everywhere.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.facilities import LAYERS
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.wire import RawReset, RawStep

pytestmark = pytest.mark.hostile

LOOKOUTS = {
    "order and class state": {
        "head": "plays = []",
        "init": "plays.append(1)\nself.__class__.made = getattr(self.__class__, 'made', 0) + 1",
        "reset": "return str((len(plays), self.made)), {}",
        "step": "plays.append(2)\nsaid = str((len(plays), self.made))",
    },
    "clocks": {
        "head": "import time, datetime, uuid\nloaded = time.time(), time.monotonic()",
        "reset": (
            "return str((loaded, time.time(), time.perf_counter(), time.process_time(), "
            "datetime.datetime.now(), uuid.uuid4(), uuid.uuid1())), {}"
        ),
        "step": "said = str((time.time(), time.monotonic_ns(), datetime.date.today()))",
    },
    "process": {
        "head": "import os, sys",
        "reset": (
            "def ask(call):\n"
            "    try:\n"
            "        return str(call())\n"
            "    except OSError as problem:\n"
            "        return str(problem)\n"
            "calls = [os.getpid, os.getppid, os.getuid, os.getcwd, os.uname,\n"
            "         os.getloadavg, lambda: sorted(os.environ), lambda: os.sched_getaffinity(0),\n"
            "         lambda: os.stat('/'), lambda: sys.argv, lambda: len(sys.modules)]\n"
            "return str([ask(call) for call in calls]), {}"
        ),
    },
    "memory": {
        "head": "import gc, sys",
        "reset": (
            "depth, frame = 0, sys._getframe()\n"
            "while frame:\n"
            "    depth, frame = depth + 1, frame.f_back\n"
            "sizes = [id(bytes(size)) for size in (*range(0, 600, 16), 5000, 10**6)]\n"
            "return str((id(object()), id(self), id(type(self)), id([]), depth, gc.get_count(),\n"
            "            sizes, id({}), id((self, 1)), id(1.5 * depth), id(10**9 + depth),\n"
            "            gc.get_freeze_count(), len(gc.get_objects()), sys.getallocatedblocks(),\n"
            "            id(frame), hash('a'), hash(object()))), {}"
        ),
        "step": (
            "sizes = [id(bytes(size)) for size in (*range(0, 600, 16), 5000, 10**6)]\n"
            "said = str((id(object()), id(action), sizes, gc.get_count(), len(gc.get_objects())))"
        ),
    },
    "chance": {
        "head": "import os, random",
        "reset": (
            "return str((seed, random.random(), random.getrandbits(64), "
            "random.SystemRandom().random())), {}"
        ),
        "step": "said = str(random.random())",
    },
}

# A nonce, say, is drawn for every request: one play that looks alike may be luck.
PLAYS = 8


def views(child: RawChild) -> list[str]:
    """Everything that the lookout saw in two episodes of two instances."""
    seen: list[str] = []
    for seed in (11, 2**31 - 1):
        # One at a time: a batch is sent in pieces when the machine is busy, and that moves memory.
        for slot in (0, 1):
            seen.append(_seen(child.reset([slot], [seed])[0]))
            seen.append(_seen(child.step([slot], ["left"])[0]))
    return seen


def _seen(item: object) -> str:
    assert isinstance(item, RawReset | RawStep), item
    assert isinstance(item.observation, str)
    return item.observation


@pytest.mark.parametrize("name", LOOKOUTS)
def test_hostile_lookout_sees_the_same_in_both_arms_and_in_validation(
    opened: Callable[..., RawChild], write: Callable[..., str], healthy: str, name: str
) -> None:
    source = write(**LOOKOUTS[name])

    def played(pool: SandboxPool) -> list[str]:
        child = pool.open_raw(source, instances=2)
        assert child.inspect().findings == []
        loaded = child.load()
        assert loaded.raised is None, loaded
        return views(child)

    with SandboxPool(policy="off") as training, SandboxPool(policy="off") as validation:
        arms = [played(training)]
        # Whatever else runs in between, and in whichever order, the arms look alike.
        with opened(training, healthy) as other:
            other.step([0], ["go"])
            arms += [played(training) for _ in range(PLAYS)]
        checks = [played(validation) for _ in range(PLAYS)]
    for place, view in enumerate(arms):
        assert view == arms[0], f"arm {place} looks different"
    for place, view in enumerate(checks):
        assert view == checks[0], f"check {place} looks different"
    if name != "memory":
        # The kernel lays out every zygote's memory anew, so that addresses say nothing here.
        assert arms[0] == checks[0], "validation looks different"


def written(pid: int) -> Iterator[tuple[int, bytes]]:
    """All memory that a process may write, by address; it has to wait for a request."""
    while Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "S":
        time.sleep(0.001)
    with Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            place, rights, *_ = line.split()
            if "w" in rights:
                start, end = (int(word, 16) for word in place.split("-"))
                memory.seek(start)
                yield start, memory.read(end - start)


def differences(one: bytes, other: bytes) -> Iterator[tuple[int, int, int]]:
    """Words of 32 bits that differ: where, and both."""
    for page in range(0, len(one), 4096):
        if one[page : page + 4096] != other[page : page + 4096]:
            for place in range(page, min(page + 4096, len(one)), 4):
                left, right = one[place : place + 4], other[place : place + 4]
                if left != right:
                    yield place, int.from_bytes(left, "little"), int.from_bytes(right, "little")


def test_hostile_memory_that_a_child_begins_with_is_that_of_every_other(
    healthy: str, opened: Callable[..., RawChild]
) -> None:
    # A process of another uid, or one that can't be traced, shows its memory to root alone.
    layers = frozenset(LAYERS) if os.geteuid() == 0 else frozenset(LAYERS) - {"uid"}
    seen: list[dict[int, bytes]] = []
    own: list[set[int]] = []
    began = int(time.monotonic())
    with SandboxPool(policy="off", level="best_effort", layers=layers) as pool:
        for _ in range(6):
            # What lies between, a whole episode and an ending, leaves no trace either.
            with opened(pool, healthy) as other:
                other.step([0], ["go"])
            with pool.open_raw(healthy) as child:
                try:
                    seen.append(dict(written(child.pid)))
                except PermissionError as problem:
                    pytest.skip(f"this account can't read its own children's memory: {problem}")
                uid = child._child.uid
                # Python keeps a number in parts of 30 bits.
                own.append({uid, uid & (1 << 30) - 1, uid >> 30})
        drawn = "pids" not in pool.facilities.problems and "pid" in pool.facilities.namespaces
    # Native code can read this clock at any time; its seconds also lie on the stack.
    seconds = range(began, int(time.monotonic()) + 2)
    processors = os.cpu_count() or 1
    for place, memory in enumerate(seen[1:], 1):
        assert memory.keys() == seen[0].keys(), "another layout"
        words = [
            (start + at, left, right)
            for start, data in memory.items()
            for at, left, right in differences(seen[0][start], data)
            # The kernel notes there which processor the process runs on (rseq).
            if max(left, right) >= processors
        ]
        words = [
            one
            for one in words
            if not (one[1] in own[0] and one[2] in own[place])
            and not (one[1] in seconds and one[2] in seconds)
        ]
        if drawn:
            # The pid of the child before, which was drawn and says nothing.
            assert len(words) <= 1 and all(1000 <= max(one[1:]) < 32_000 for one in words), words
        else:
            assert len(words) <= 4, words
