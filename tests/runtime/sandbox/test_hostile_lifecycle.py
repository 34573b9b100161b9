"""Who lives and who dies: leaks, lost zygotes, lost trainers, crowds."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spade_runtime.errors import EnvFault, EnvTimeout, HostError
from spade_runtime.sandbox import orders
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.drive import drive
from spade_runtime.sandbox.facilities import LAYERS
from spade_runtime.sandbox.nursery import Nursery
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.syscalls import allow_list
from spade_runtime.sandbox.wire import RawStep
from spade_runtime.spec import Limits

pytestmark = pytest.mark.hostile

ENDLESS = "while action == 'hang':\n    pass"


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def started(pid: int) -> int:
    """When a process began, in ticks of the kernel's clock."""
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])


def gone(pids: list[int], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(alive(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def descendants(root: int) -> list[int]:
    """Every process below one, dead or alive."""
    children: dict[int, list[int]] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                fields = (place / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(place.name))
    found, todo = [], [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def resident_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)


def test_hostile_thousand_spawns_and_kills_leave_nothing() -> None:
    nursery = Nursery(
        layers=frozenset(LAYERS),
        program=allow_list(),
        hash_seed=0,
        preload=(),
        memory_mib=128,
        uids=8,
    )
    try:
        outer = nursery.process_id
        for _ in range(20):
            child = nursery.take(128)
            child.kill()
            nursery.forget(child)
            child.close()
        before_fds = len(list(Path("/proc/self/fd").iterdir()))
        before_kib = max(resident_kib(pid) for pid in descendants(outer))
        # Eight uids for a thousand children: one that was not given back would be missed soon.
        for place in range(1000):
            child = nursery.take(128)
            child.kill()
            if place % 2:
                assert nursery.ending(child) is not None
            nursery.forget(child)
            child.close()
        assert len(list(Path("/proc/self/fd").iterdir())) <= before_fds + 3
        end = time.monotonic() + 10
        while len(descendants(outer)) > 3 and time.monotonic() < end:
            time.sleep(0.05)
        # Pid 1 of the namespace, the mold, and the one child that is kept ready: no zombie.
        assert len(descendants(outer)) == 3
        assert max(resident_kib(pid) for pid in descendants(outer)) < before_kib + 2048
        assert nursery.spawned - nursery.gone == 1
    finally:
        nursery.close()
    assert gone([outer])


def test_hostile_more_children_than_uids_are_refused_with_the_reason() -> None:
    nursery = Nursery(
        layers=frozenset(LAYERS),
        program=allow_list(),
        hash_seed=0,
        preload=(),
        memory_mib=128,
        ready=0,
        uids=2,
    )
    try:
        taken = [nursery.take(128) for _ in range(2)]
        with pytest.raises(HostError, match="too many environments"):
            nursery.take(128)
        for child in taken:
            child.kill()
            nursery.forget(child)
            child.close()
    finally:
        nursery.close()


def test_hostile_child_that_is_dropped_is_ended(
    bare: SandboxPool, opened: Callable[..., RawChild], healthy: str
) -> None:
    child = opened(bare, healthy)
    pid, live = child.pid, bare.stats()["live"]
    del child
    gc.collect()
    assert gone([pid])
    assert bare.stats()["live"] == live - 1


@pytest.mark.parametrize("without", ["nothing", "namespaces"])
@pytest.mark.parametrize("whom", ["zygote", "mold", "outermost"])
def test_hostile_killed_zygote_takes_its_children_and_is_replaced(
    opened: Callable[..., RawChild], healthy: str, quick: Limits, whom: str, without: str
) -> None:
    layers = frozenset(LAYERS) - {without}
    with SandboxPool(level="best_effort", policy="off", limits=quick, layers=layers) as pool:
        children = [opened(pool, healthy) for _ in range(3)]
        (zygote,) = {parent(child.pid) for child in children}
        # Children are made beside the mold, which is the zygote's oldest.
        mold = min(descendants(zygote), key=started)
        (nursery,) = pool._nurseries.values()
        everybody = descendants(nursery.process_id)
        assert {zygote, mold, *(child.pid for child in children)} <= set(everybody)
        os.kill({"zygote": zygote, "mold": mold}.get(whom, nursery.process_id), signal.SIGKILL)
        assert gone(everybody)
        with pytest.raises(HostError):
            children[0].step([0], ["x"])
        with opened(pool, healthy) as child:
            assert isinstance(child.step([0], ["go"])[0], RawStep)
        assert pool.stats()["restarts"] == 1
        for child in children:
            child.kill()


@pytest.mark.parametrize("ending", ["SIGKILL", "SIGTERM", "exit"])
def test_hostile_end_of_the_trainer_leaves_no_survivor(
    tmp_path: Path, repository: Path, healthy: str, ending: str
) -> None:
    program = f"""
    import json, os, sys, time
    sys.path.insert(0, {str(repository)!r})
    from spade_runtime.sandbox.pool import SandboxPool
    pool = SandboxPool()
    children = []
    for _ in range(3):
        child = pool.open_raw({healthy!r})
        child.inspect(); child.load(); child.reset([0], [1])
        children.append(child)
    # A forked helper that holds every descriptor of the trainer must not keep children alive.
    helper = os.fork()
    if helper == 0:
        time.sleep(120)
        os._exit(0)
    print(json.dumps([[child.pid for child in children], helper]), flush=True)
    if {ending!r} == "exit":
        os._exit(0)
    time.sleep(120)
    """
    script = tmp_path / "trainer.py"
    script.write_text(textwrap.dedent(program))
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as trainer:
        assert trainer.stdout is not None
        pids, helper = json.loads(trainer.stdout.readline())
        try:
            below = [*pids, *descendants(trainer.pid)]
            if ending != "exit":
                assert all(alive(pid) for pid in pids)
                trainer.send_signal(signal.Signals[ending])
            trainer.wait(20)
            below.remove(helper) if helper in below else None
            assert gone(below)
        finally:
            os.kill(helper, signal.SIGKILL)


def test_hostile_crowd_that_hangs_at_once(
    bare: SandboxPool,
    opened: Callable[..., RawChild],
    write: Callable[..., str],
    healthy: str,
    quick: Limits,
) -> None:
    # They compete with each other: the wall clock has to wait for all of them.
    patient = quick.model_copy(update={"wall_factor": 50.0})
    source = write(step=ENDLESS)
    hanging = [opened(bare, source, limits=patient) for _ in range(8)]
    faults: list[BaseException] = []

    def hang(child: RawChild) -> None:
        try:
            child.step([0], ["hang"])
        except EnvFault as fault:
            faults.append(fault)

    with opened(bare, healthy) as other:
        threads = [threading.Thread(target=hang, args=[child]) for child in hanging]
        for thread in threads:
            thread.start()
        beats = 0
        while any(thread.is_alive() for thread in threads):
            # The trainer's own threads run on, and a healthy class is served among the others.
            beats += 1
            assert isinstance(other.step([0], ["go"])[0], RawStep)
            time.sleep(0.005)
        for thread in threads:
            thread.join()
    assert beats > 5
    assert len(faults) == 8 and all(isinstance(fault, EnvTimeout) for fault in faults)
    assert gone([child.pid for child in hanging])


def test_hostile_250_threads_call_at_once(bare: SandboxPool, healthy: str) -> None:
    def play(seed: int) -> tuple[Any, ...]:
        with bare.open_raw(healthy) as child:
            child.inspect()
            child.load()
            child.reset([0], [seed])
            return tuple(item.info for item in (child.step([0], ["a"])[0] for _ in range(3)))  # type: ignore[union-attr]

    barrier = threading.Barrier(250)

    def together(seed: int) -> tuple[Any, ...]:
        barrier.wait(60)
        return play(seed)

    with ThreadPoolExecutor(250) as threads:
        found = list(threads.map(together, range(250)))
    assert set(found) == {(b'{"count": 1}', b'{"count": 2}', b'{"count": 3}')}


def test_hostile_child_shared_by_threads_answers_each(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    with (
        opened(bare, write(step="said = action"), 32) as child,
        ThreadPoolExecutor(32) as threads,
    ):
        for _ in range(40):
            found = list(threads.map(lambda slot: child.step([slot], [f"m{slot}"]), range(32)))
            assert [item.observation for (item,) in found] == [f"m{slot}" for slot in range(32)]  # type: ignore[union-attr]


def test_hostile_kill_while_a_request_runs(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    step = "import _thread\nlock = _thread.allocate_lock()\nlock.acquire()\nlock.acquire()"
    child = opened(bare, write(step=step))
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            child.step([0], ["x"])
        except HostError as fault:
            caught.append(fault)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.1)
    child.kill()
    thread.join(10)
    assert not thread.is_alive() and "was killed" in str(caught[0])
    assert gone([child.pid])


def test_hostile_faults_among_many_driven_at_once(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], quick: Limits
) -> None:
    source = write(step=f"{ENDLESS}\nassert action != 'raise'\nsaid = action * 1000")
    children = [opened(bare, source, 4) for _ in range(6)]
    actions = ["a", "hang", "b", "raise", "c" * 30_000, "d"]
    found = drive(
        [
            (child, orders.step(quick, range(4), [action] * 4))
            for child, action in zip(children, actions, strict=True)
        ]
    )
    assert isinstance(found[1], EnvTimeout)
    for place in (0, 2, 5):
        assert [item.observation for item in found[place]] == [actions[place] * 1000] * 4  # type: ignore[union-attr]
    assert [item.exc_type for item in found[3]] == ["AssertionError"] * 4  # type: ignore[union-attr]
    assert [item.code for item in found[4]] == ["SPD804"] * 4  # type: ignore[union-attr]
    again = drive([(child, orders.step(quick, [0], ["e"])) for child in children])
    assert [isinstance(one, EnvFault) for one in again] == [False, True] + [False] * 4
    for child in children:
        child.kill()


def test_hostile_pool_closes_over_live_children(
    opened: Callable[..., RawChild], healthy: str, quick: Limits
) -> None:
    pool = SandboxPool(policy="off", limits=quick)
    children = [opened(pool, healthy) for _ in range(3)]
    pool.close()
    pool.close()
    assert gone([child.pid for child in children])
    with pytest.raises(HostError):
        children[0].step([0], ["x"])
    with pytest.raises(RuntimeError, match="closed"):
        pool.open_raw(healthy)
    for child in children:
        child.kill()
