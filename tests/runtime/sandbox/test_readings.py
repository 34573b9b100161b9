"""A source is read in one child, and played in others that never read any."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from spade_runtime.errors import EnvTimeout, HostStarved, InvalidEnvironment
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.readings import Readings
from spade_runtime.sandbox.wire import Inspection, RawStep, Reading
from spade_runtime.spec import Limits


def test_a_source_is_read_once_and_each_time_another_child_plays_it(
    healthy: str, write: Callable[..., str]
) -> None:
    with SandboxPool() as pool:
        seen = []
        for _ in range(3):
            with pool.open(healthy, instances=2) as session:
                session.reset([1, 2])
                seen.append(session.step(["a", "b"]))
        assert seen[0] == seen[1] == seen[2]
        assert pool.stats()["spawned"] == 4
        assert pool.stats()["opened"] == 3
        with pool.open(write(step="said = 'another'")):
            assert pool.stats()["spawned"] == 6
        assert pool.stats()["live"] == 0


def test_the_policy_is_part_of_what_was_asked(write: Callable[..., str]) -> None:
    source = write(step="said = str(().__class__.__name__)")
    with SandboxPool() as pool:
        for _ in range(2):
            with pytest.raises(InvalidEnvironment) as refused, pool.open(source):
                pass
            assert refused.value.findings[0].code == "SPD103"
            with pool.open_raw(source, policy="off") as child:
                assert child.inspect().findings == []
                assert child.load().raised is None
                child.reset([0], [1])
                (item,) = child.step([0], ["x"])
                assert isinstance(item, RawStep) and item.observation == "tuple"


def test_code_that_fits_into_no_reply_is_compiled_where_it_runs(
    healthy: str, write: Callable[..., str]
) -> None:
    long = "\n".join(f"NAME_{number} = 'text number {number} of many'" for number in range(1200))
    source = write(head=long, step="said = NAME_1199")
    limits = Limits(reply_bytes=65536)
    with SandboxPool(limits=limits) as pool, pool.open_raw(source) as child:
        assert child.inspect().findings == []
        assert child._reading is not None and child._reading.code is None
        assert child.load().raised is None
        child.reset([0], [1])
        (item,) = child.step([0], ["x"])
        assert isinstance(item, RawStep) and item.observation == "text number 1199 of many"
        with pool.open_raw(healthy) as other:
            other.inspect()
            assert other._reading is not None and other._reading.code is not None


def test_a_source_that_can_not_be_read_in_time_costs_its_reader_and_is_not_remembered(
    healthy: str,
) -> None:
    slow = healthy + "\n" + "\n".join(f"A{n} = ({n}, [{n}, {{{n}: {n}}}])" for n in range(1500))
    with SandboxPool() as pool:
        for _ in range(2):
            tight = pool.open_raw(slow, limits=Limits(load_seconds=0.001))
            # On a busy machine it may be the machine that is blamed.
            with tight, pytest.raises((EnvTimeout, HostStarved)):
                tight.inspect()
        with pool.open(slow) as session:
            assert session.reset([1])[0].observation
        assert pool.stats()["live"] == 0


def test_those_used_longest_ago_are_forgotten() -> None:
    asked: list[str] = []

    def of(name: str) -> Reading:
        def read() -> Reading:
            asked.append(name)
            return Reading(Inspection(class_name=name), b"x" * 10_000)

        return readings.of(name, policy=True, read=read)

    readings = Readings(most_bytes=45_000)
    for name in ("a", "b", "c", "a", "d", "a", "c", "b"):
        assert of(name).inspection.class_name == name
    assert asked == ["a", "b", "c", "d", "b"]


def test_two_that_want_the_same_wait_for_one_reading() -> None:
    readings, asked = Readings(), []

    def read() -> Reading:
        asked.append(threading.get_ident())
        time.sleep(0.1)
        return Reading(Inspection())

    found: list[Reading] = []
    threads = [
        threading.Thread(target=lambda: found.append(readings.of("x", policy=True, read=read)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asked) == 1
    assert all(one is found[0] for one in found)


def test_what_a_reading_raises_goes_through_and_nothing_is_kept() -> None:
    readings = Readings()

    def fail() -> Reading:
        raise EnvTimeout("too slow", code="SPD801")

    with pytest.raises(EnvTimeout):
        readings.of("x", policy=True, read=fail)
    fresh = Reading(Inspection())
    assert readings.of("x", policy=True, read=lambda: fresh) is fresh
