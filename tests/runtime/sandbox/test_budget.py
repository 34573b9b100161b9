"""Whose fault a slow call is: the kernel's clocks tell."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from spade_runtime.errors import EnvTimeout, HostStarved
from spade_runtime.sandbox.budget import SLACK_SECONDS, Budget, asleep, cpu_clock, run_delay
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.wire import RawStep
from spade_runtime.spec import Limits


def spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_the_kernel_s_clock_of_a_process_is_its_own() -> None:
    before = cpu_clock(os.getpid())
    spin(0.05)
    assert 0.05 <= cpu_clock(os.getpid()) - before < 1.0
    with pytest.raises(OSError):
        cpu_clock(2**22 + 5)


def test_run_delay_and_sleep_are_read_where_there_is_a_process(
    bare: SandboxPool, opened: Callable[..., RawChild], healthy: str
) -> None:
    with opened(bare, healthy) as child:
        delay = run_delay(child.pid)
        assert delay is not None and delay >= 0
        end = time.monotonic() + 10
        while not asleep(child.pid) and time.monotonic() < end:
            time.sleep(0.001)  # it goes to sleep a moment after its reply
        assert asleep(child.pid)
    assert run_delay(2**22 + 5) is None and not asleep(2**22 + 5)
    assert not asleep(os.getpid())


def test_a_budget_is_spent_by_computing() -> None:
    budget = Budget(os.getpid(), 0.02, 1, 100.0)
    assert not budget.spent()
    spin(0.02 + SLACK_SECONDS)
    assert budget.spent() and budget.over_cpu()
    assert not budget.progress()


def test_a_batch_has_the_time_of_each_call() -> None:
    budget = Budget(os.getpid(), 0.1, 3, 100.0)
    for _ in range(3):
        spin(0.09)
        assert budget.progress()
    spin(0.2)
    assert not budget.progress()


def test_a_batch_has_no_more_than_the_time_of_all_calls() -> None:
    # Items that come one after another, as a child can claim, buy no more time than there is.
    budget = Budget(os.getpid(), 0.05, 3, 100.0)
    kept = []
    for _ in range(8):
        spin(0.04)
        kept.append(budget.progress() and not budget.spent())
    assert kept[0] and not kept[-1]


def test_sleeping_is_the_child_s_own_time() -> None:
    budget = Budget(os.getpid(), 0.05, 1, 2.0)
    assert not budget.spent()
    time.sleep(0.3)
    # This process is awake whenever it looks, so tell the budget what it would have seen.
    budget._looks_asleep = budget._looks
    assert budget.spent() and not budget.over_cpu()


def test_a_call_within_the_slack_of_its_time_is_not_taken_for_asleep() -> None:
    budget = Budget(os.getpid(), 100.0, 1, 2.0)
    assert not budget.spent()
    # The processor gave it a little more than its time, and the backstop is reached just then.
    budget._cpu_mark -= 100.0 + SLACK_SECONDS / 2
    budget._look_cpu += 100.0 + SLACK_SECONDS / 2
    assert not budget.over_cpu() and budget.starved()


@pytest.mark.hostile
def test_hostile_child_can_not_foresee_when_it_is_looked_at() -> None:
    # One that is awake for the looks alone would have time without end, and pass for starved.
    budget = Budget(os.getpid(), 5.0, 1, 1000.0)
    assert not budget.spent()
    waits = [budget.wait_ms() for _ in range(40)]
    assert len(set(waits)) > 5 and 20 <= min(waits) < 50 < max(waits) <= 76


def test_a_call_that_is_slow_but_within_its_time_passes(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    limits = Limits(step_seconds=1.0)
    step = "end = time.process_time() + 0.2\nwhile time.process_time() < end:\n    pass"
    head = "import sys\ntime = sys.modules['time']"
    with opened(bare, write(head=head, step=step), 4, limits=limits) as child:
        items = child.step(range(4), ["x"] * 4)
        assert all(isinstance(item, RawStep) for item in items)
        assert child.cpu_seconds > 0.8


@pytest.mark.hostile
def test_hostile_call_just_over_its_time_is_refused_though_it_came_back(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    limits = Limits(step_seconds=0.1, wall_factor=50)
    step = "end = time.process_time() + 0.2\nwhile time.process_time() < end:\n    pass"
    head = "import sys\ntime = sys.modules['time']"
    with (
        opened(bare, write(head=head, step=step), limits=limits) as child,
        pytest.raises(EnvTimeout),
    ):
        child.step([0], ["x"])


def test_a_child_that_the_host_stopped_is_the_host_s_fault(
    bare: SandboxPool, opened: Callable[..., RawChild], healthy: str
) -> None:
    child = opened(bare, healthy, limits=Limits(step_seconds=0.1, wall_factor=1))
    os.kill(child.pid, signal.SIGSTOP)
    with pytest.raises(HostStarved, match="no processor"):
        child.step([0], ["x"])
    child.kill()


def test_the_kernel_s_own_limit_is_raised_with_each_request(
    bare: SandboxPool, opened: Callable[..., RawChild], healthy: str
) -> None:
    import resource

    with opened(bare, healthy) as child:
        try:
            soft, hard = resource.prlimit(child.pid, resource.RLIMIT_CPU)
        except PermissionError:
            pytest.skip("this root lacks CAP_SYS_RESOURCE, so the limit of the spawn stands")
        assert 0 < soft < 60 <= hard
