"""Environments that hang while an event loop, or a thread of its own, has to go on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spade_runtime.errors import EnvTimeout, HostError, UsageError
from spade_runtime.sandbox import orders
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.drive import run_async
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.wire import RawStep
from spade_runtime.spec import Limits

pytestmark = pytest.mark.hostile

ENDLESS = "while action == 'hang':\n    pass"


def gone(pid: int, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_hostile_hang_leaves_the_event_loop_free(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], quick: Limits
) -> None:
    source = write(step=f"{ENDLESS}\nsaid = action")
    children = [opened(bare, source) for _ in range(6)]

    async def scene() -> tuple[list[Any], int]:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0.01)

        heart = asyncio.ensure_future(beat())
        actions = ["a", "hang", "b", "hang", "c", "x" * 200_000]
        found = await asyncio.gather(
            *(
                run_async(child, orders.step(quick, [0], [action]))
                for child, action in zip(children, actions, strict=True)
            ),
            return_exceptions=True,
        )
        heart.cancel()
        return found, beats

    found, beats = asyncio.run(scene())
    assert isinstance(found[1], EnvTimeout) and isinstance(found[3], EnvTimeout)
    assert [found[place][0].observation for place in (0, 2, 4)] == ["a", "b", "c"]
    assert found[5][0].code == "SPD804"
    assert beats > 10
    for child in children:
        child.kill()


def test_hostile_hang_does_not_hold_up_a_call_from_its_own_event_loop(
    opened: Callable[..., RawChild], write: Callable[..., str], healthy: str, quick: Limits
) -> None:
    # The only worker's place is held by a request that this very thread would have to go on with.
    with SandboxPool(policy="off", limits=quick, workers=1) as pool:
        hanging, other = opened(pool, write(step=ENDLESS)), opened(pool, healthy)

        async def scene() -> None:
            task = asyncio.ensure_future(run_async(hanging, orders.step(quick, [0], ["hang"])))
            await asyncio.sleep(0)
            assert isinstance(other.step([0], ["go"])[0], RawStep)
            with pytest.raises(UsageError, match="wait for itself"):
                hanging.step([0], ["x"])
            with pytest.raises(EnvTimeout):
                await task

        asyncio.run(scene())


def test_hostile_cancelled_request_ends_its_child(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], quick: Limits
) -> None:
    child = opened(bare, write(step=ENDLESS))

    async def scene() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run_async(child, orders.step(quick, [0], ["hang"])), 0.05)

    asyncio.run(scene())
    assert gone(child.pid)
    with pytest.raises(HostError, match="interrupted"):
        child.step([0], ["x"])
