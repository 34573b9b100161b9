"""Where children compute: beside the parent while they are quick, anywhere otherwise."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spade_runtime.errors import EnvFault
from spade_runtime.sandbox import orders, placement
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.drive import drive, run_async
from spade_runtime.sandbox.placement import Hold, Placement
from spade_runtime.sandbox.pool import SandboxPool

EVERYWHERE = os.sched_getaffinity(0)


@pytest.fixture
def sleeper() -> Iterator[int]:
    """A process of ours that waits."""
    line = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(line, stdin=subprocess.PIPE) as process:
        yield process.pid
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(params=sorted(EVERYWHERE)[:2])
def here(request: pytest.FixtureRequest) -> Iterator[int]:
    """The one processor that this thread may compute on."""
    os.sched_setaffinity(0, {request.param})
    yield request.param
    os.sched_setaffinity(0, EVERYWHERE)


def test_a_child_is_bound_to_the_caller_s_processor_and_let_go(sleeper: int, here: int) -> None:
    os.sched_setaffinity(sleeper, EVERYWHERE)
    place = Placement(sleeper)
    assert place.near()
    assert os.sched_getaffinity(sleeper) == {here}
    assert place.near()
    place.free()
    assert os.sched_getaffinity(sleeper) == EVERYWHERE
    place.free()
    assert os.sched_getaffinity(sleeper) == EVERYWHERE


def test_a_child_goes_along_when_the_caller_moves(sleeper: int) -> None:
    place = Placement(sleeper)
    try:
        for processor in EVERYWHERE:
            os.sched_setaffinity(0, {processor})
            assert place.near()
            assert os.sched_getaffinity(sleeper) == {processor}
    finally:
        os.sched_setaffinity(0, EVERYWHERE)
    place.free()
    assert os.sched_getaffinity(sleeper) == EVERYWHERE


def test_a_child_keeps_away_from_a_processor_that_was_crowded(sleeper: int, here: int) -> None:
    os.sched_setaffinity(sleeper, EVERYWHERE)
    place = Placement(sleeper)
    assert place.near()
    for rounds in (2, 4, 8, 16, 32, 64, 64):
        place.crowded()
        assert os.sched_getaffinity(sleeper) == EVERYWHERE
        assert [place.near() for _ in range(rounds + 1)] == [False] * rounds + [True]
        assert os.sched_getaffinity(sleeper) == {here}
    # Once it was quick there for a while, it is kept away briefly again.
    assert [place.near() for _ in range(20)] == [True] * 20
    place.crowded()
    assert [place.near() for _ in range(3)] == [False, False, True]


def test_a_process_that_is_gone_is_no_error() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    place = Placement(process.pid)
    assert not place.near()
    assert not place.near()
    place.free()


BUSY = """
deadline = 200000
while deadline:
    deadline -= 1
"""


def test_a_child_that_computes_for_long_is_let_go(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    with opened(bare, write(step=BUSY)) as child:
        order = orders.step(bare.limits, [0], ["x"])
        assert child.expected(order) == 0.0
        child.step([0], ["x"])
        child.step([0], ["x"])
        assert child.expected(order) > placement.ALONE_SECONDS
        assert os.sched_getaffinity(child.pid) == EVERYWHERE
        child.step([0], ["x"])
        assert os.sched_getaffinity(child.pid) == EVERYWHERE


def test_several_children_with_much_to_do_are_let_go(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    children = [opened(bare, write(step=BUSY)) for _ in range(2)]
    for _ in range(3):
        drive([(child, orders.step(bare.limits, [0], ["x"])) for child in children])
    assert [os.sched_getaffinity(child.pid) for child in children] == [EVERYWHERE] * 2
    for child in children:
        child.kill()


def test_an_event_loop_keeps_its_processor_for_itself(
    bare: SandboxPool, opened: Callable[..., RawChild], healthy: str
) -> None:
    with opened(bare, healthy) as child:
        child.step([0], ["x"])
        asyncio.run(run_async(child, orders.step(bare.limits, [0], ["x"])))
        assert os.sched_getaffinity(child.pid) == EVERYWHERE


def test_a_thread_is_held_where_it_is_and_let_go_as_it_was() -> None:
    hold = Hold()
    try:
        (held,) = os.sched_getaffinity(0)
        assert held in EVERYWHERE
    finally:
        hold.release()
    assert os.sched_getaffinity(0) == EVERYWHERE
    hold.release()
    assert os.sched_getaffinity(0) == EVERYWHERE


def test_a_hold_gives_back_what_the_caller_allowed_itself(here: int) -> None:
    hold = Hold()
    assert os.sched_getaffinity(0) == {here}
    hold.release()
    assert os.sched_getaffinity(0) == {here}


@pytest.mark.parametrize("word", ["a", "loop"])
def test_the_caller_is_held_while_it_waits_and_free_afterwards(
    opened: Callable[..., RawChild],
    bare: SandboxPool,
    write: Callable[..., str],
    word: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether the reply comes or the child is lost."""
    seen: list[set[int]] = []
    wait = RawChild._wait

    def noting(self: RawChild, pending: Any) -> None:
        seen.append(os.sched_getaffinity(0))
        wait(self, pending)

    monkeypatch.setattr(RawChild, "_wait", noting)
    with opened(bare, write(step="while action == 'loop': pass")) as child:
        for _ in range(3):
            child.step([0], ["a"])
        seen.clear()
        if word == "loop":
            with pytest.raises(EnvFault):
                child.step([0], [word])
        else:
            child.step([0], [word])
        assert len(seen[0]) == 1
        assert os.sched_getaffinity(0) == EVERYWHERE
