"""Environments that try to tell hinted plays from unhinted ones, or validation from training.

Each hands out all that it can see as its observation. Two arms of a step play in two fresh
children, a validator in a pool of its own: what is seen must be the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spade_runtime.sandbox.channel import RawChild
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
            "return str((id(object()), id(self), id(type(self)), id([]), depth, gc.get_count(),\n"
            "            gc.get_freeze_count(), len(gc.get_objects()), sys.getallocatedblocks(),\n"
            "            hash('a'), hash(object()))), {}"
        ),
        "step": "said = str((id(object()), id(action), gc.get_count(), len(gc.get_objects())))",
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
            arms += [played(training), played(training)]
        checks = [played(validation) for _ in range(3)]
    for place, view in enumerate(arms):
        assert view == arms[0], f"arm {place} looks different"
    for place, view in enumerate(checks):
        assert view == checks[0], f"check {place} looks different"
    if name != "memory":
        # The kernel lays out every zygote's memory anew, so that addresses say nothing here.
        assert arms[0] == checks[0], "validation looks different"
