"""Environments that never come back: the parent's clocks end them, whatever they catch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spade_runtime.errors import EnvFault, EnvMemoryExceeded, EnvTimeout
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.wire import RawStep

pytestmark = pytest.mark.hostile

ENDLESS = "while True:\n    pass"
SWALLOW = """
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
    finally:
        continue
"""
UNINTERRUPTIBLE = {
    "power": "10 ** 10 ** 8",
    "regex": "re.match(r'(\\w*\\s?)*\\.$', 'moss and fern and ' * 9 + '!')",
    "sum": "sum(range(10 ** 12))",
    "digits": "str(7 ** 3000000)",
    "count": "(b'x' * 10 ** 6).count(b'y' * 10) or max(range(10 ** 12))",
}


@pytest.mark.parametrize("place", ["head", "init", "reset", "step"])
@pytest.mark.parametrize("loop", [ENDLESS, SWALLOW], ids=["endless", "swallowing"])
def test_hostile_loop_ends_in_a_timeout(
    play: Callable[..., list[object]], write: Callable[..., str], place: str, loop: str
) -> None:
    fault = play(write(**{place: loop}), "x")[-1]
    assert isinstance(fault, EnvTimeout) and fault.code == "SPD801"
    phases = {"head": "load", "init": "reset", "reset": "reset", "step": "step"}
    assert fault.evidence.phase == phases[place]


@pytest.mark.parametrize("code", UNINTERRUPTIBLE.values(), ids=UNINTERRUPTIBLE.keys())
def test_hostile_c_code_that_no_signal_interrupts(
    play: Callable[..., list[object]], write: Callable[..., str], code: str
) -> None:
    head = "import re, sys\nsys.set_int_max_str_digits(0)"
    fault = play(write(head=head, step=code), "x")[-1]
    assert isinstance(fault, EnvTimeout | EnvMemoryExceeded)


@pytest.mark.parametrize("extra", ["def close(self):\n    while True:\n        pass"])
def test_hostile_teardown(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], extra: str
) -> None:
    with opened(bare, write(extra=extra)) as child, pytest.raises(EnvTimeout) as caught:
        child.close_instances([0])
    assert caught.value.evidence.phase == "close"


def test_hostile_finaliser_is_not_called_back(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    child = opened(bare, write(extra="def __del__(self):\n    while True:\n        pass"))
    child.kill()
    assert child.fault is None


def test_hostile_wait_for_a_lock_is_found_by_the_wall_clock(
    play: Callable[..., list[object]], write: Callable[..., str]
) -> None:
    step = "lock = _thread.allocate_lock()\nlock.acquire()\nlock.acquire()"
    fault = play(write(head="import _thread", step=step), "x")[-1]
    assert isinstance(fault, EnvTimeout) and "not computing" in str(fault)


def test_hostile_hang_names_its_instance_and_its_action(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    # Each call takes several times as long as replies are held back, on a fast machine too.
    step = "while action == 'hang':\n    pass\nend = 1000000\nwhile end:\n    end -= 1"
    with opened(bare, write(step=step), 8) as child, pytest.raises(EnvTimeout) as caught:
        child.step(range(8), ["a", "b", "c", "d", "e", "f", "hang", "g"])
    assert caught.value.evidence.last_action == "hang"


def test_hostile_hang_in_a_batch_is_found_in_one_call_s_time(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    step = "while action == 'hang':\n    pass"
    with opened(bare, write(step=step), 64) as child, pytest.raises(EnvTimeout):
        child.step(range(64), ["hang"] * 64)
    # 64 calls have 19 s together; the first one alone has 0.3.
    assert child.cpu_seconds < 3


def test_hostile_hang_ends_only_its_own_child(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], healthy: str
) -> None:
    with opened(bare, healthy, 4) as other:
        with opened(bare, write(step=ENDLESS)) as child, pytest.raises(EnvTimeout):
            child.step([0], ["x"])
        items = other.step([0, 1, 2, 3], ["go"] * 4)
        assert all(isinstance(item, RawStep) for item in items)


def test_hostile_child_stays_lost_and_says_why(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    child = opened(bare, write(step=ENDLESS), 2)
    with pytest.raises(EnvTimeout) as first:
        child.step([0], ["x"])
    with pytest.raises(EnvFault) as second:
        child.step([1], ["y"])
    assert second.value is first.value is child.fault
