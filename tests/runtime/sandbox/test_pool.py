"""The pool's face: opening, refusing, sharing, counting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spade_runtime.errors import (
    EnvMemoryExceeded,
    EnvRaised,
    EnvTimeout,
    HostError,
    InvalidEnvironment,
    UsageError,
)
from spade_runtime.sandbox import cgroups
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.wire import RawReset
from spade_runtime.spec import Limits


def test_opening_gives_a_session_with_its_manifest(guarded: SandboxPool, healthy: str) -> None:
    with guarded.open(healthy, instances=2) as session:
        assert (session.spec.id, session.spec.kind) == ("spade/Count-v0", "game")
        assert session.instances == 2
        first = session.reset([1, 2])
        assert first[1].observation == "Seed 2: count to three."


def test_a_path_is_read_and_a_longer_string_is_the_text(
    guarded: SandboxPool, healthy: str, tmp_path: Path
) -> None:
    file = tmp_path / "count.py"
    file.write_text(healthy)
    with guarded.open(file) as session:
        assert session.spec.title == "Count to three."
    with guarded.open(str(file)) as session:
        assert session.spec.title == "Count to three."
    with pytest.raises(UsageError, match="can't be read"):
        guarded.open(tmp_path / "nothing.py")


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("x = 1\n", "SPD201"),
        ("class AEnv:\n    def reset(self", "SPD003"),
        ("import os\nos.getpid()\n", "SPD101"),
        ("x = '\\0'\n\0", "SPD001"),
        ("#" * 70000 + "\n", "SPD002"),
    ],
)
def test_a_source_that_the_static_gates_refuse_says_by_which_code(
    guarded: SandboxPool, source: str, code: str
) -> None:
    with pytest.raises(InvalidEnvironment, match=code) as caught:
        guarded.open(source)
    assert code in [finding.code for finding in caught.value.findings]


@pytest.mark.parametrize(
    ("head", "kind", "code"),
    [
        ("{}['iron']", EnvRaised, "SPD301"),
        ("x = 'a' * 10 ** 12", EnvMemoryExceeded, "SPD802"),
        ("while True:\n    pass", EnvTimeout, "SPD801"),
    ],
)
def test_a_module_that_fails_to_load_is_a_fault(
    write: Callable[..., str], head: str, kind: type[Exception], code: str
) -> None:
    with SandboxPool(limits=Limits(load_seconds=0.5)) as pool:
        before = pool.stats()["live"]
        with pytest.raises(kind) as caught:
            pool.open(write(head=head))
        assert caught.value.code == code  # type: ignore[attr-defined]
        assert pool.stats()["live"] == before


def test_one_child_for_each_instance_where_that_is_asked_for(
    guarded: SandboxPool, write: Callable[..., str]
) -> None:
    source = write(step="while action == 'hang':\n    pass")
    limits = Limits(step_seconds=0.3)
    before = guarded.stats()["live"]
    with guarded.open(source, instances=3, isolation="instance", limits=limits) as session:
        assert guarded.stats()["live"] == before + 3
        session.reset([1, 2, 3])
        found = session.act(["go", "hang", "go"])
        assert [one.truncated for one in found] == [False, True, False]
        assert session.faults[1] is not None and session.faults[1].code == "SPD801"
        assert session.faults[0] is None and session.faults[2] is None
        # The lost slot gets a fresh child at its next reset.
        assert session.reset([4], slots=[1])[0].observation == "ready"
    assert guarded.stats()["live"] == before


def test_a_hash_seed_is_the_pool_s_own(write: Callable[..., str]) -> None:
    source = write(reset="return str(hash('a')), info")

    def seen(seed: int) -> object:
        with SandboxPool(hash_seed=seed) as pool, pool.open_raw(source) as child:
            child.inspect()
            child.load()
            return child.reset([0], [1])[0]

    assert seen(1) == seen(1) != seen(2)


def test_a_start_time_shifts_the_real_clock(write: Callable[..., str]) -> None:
    source = write(
        head="import sys\nreal = sys.modules['time']", reset="return str(real.monotonic()), info"
    )

    def seen(shift: float) -> float:
        with (
            SandboxPool(policy="off", start_time=shift) as pool,
            pool.open_raw(source) as child,
        ):
            if "clock" in pool.facilities.problems:
                pytest.skip(pool.facilities.problems["clock"])
            child.inspect()
            child.load()
            (item,) = child.reset([0], [1])
            assert isinstance(item, RawReset) and isinstance(item.observation, str)
            return float(item.observation)

    assert 990_000 < seen(1_000_000) - seen(0) < 1_010_000


def test_a_control_group_bounds_all_children_together(
    opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    if cgroups.find() is None:
        pytest.skip("no memory controller can be written here")
    source = write(init="self.kept = bytearray(40 << 20)")
    limits = Limits(memory_mib=256, reset_seconds=5)
    with SandboxPool(policy="off", limits=limits, total_memory_mib=160) as pool:
        assert "cgroup" in pool.isolation
        lost = 0
        children = []
        for _ in range(8):
            try:
                children.append(opened(pool, source))
            except HostError as fault:
                assert "out of memory" in str(fault)
                lost += 1
        # Eight of 40 MiB are twice what all may have: the kernel ended some, whichever it chose.
        for child in children:
            try:
                child.step([0], ["x"])
            except HostError as fault:
                assert "out of memory" in str(fault)
                lost += 1
            child.kill()
        assert 4 <= lost < 8
    place = cgroups.find()
    assert place is not None and not list(place.place.glob("spade-*"))


def test_instances_of_one_child_do_not_disturb_each_other_s_chance(
    guarded: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    source = write(
        reset="return f'{random.random()} {time.time()} {uuid.uuid4()}', info",
        step="said = f'{random.random()} {time.time()}'",
        head="import time, uuid",
    )
    with opened(guarded, source, 3) as child:
        alone = [child.reset([0], [5])[0], *(child.step([0], ["x"])[0] for _ in range(3))]
        child.reset([0, 1, 2], [5, 6, 5])
        mixed: list[list[object]] = []
        for _ in range(3):
            mixed.append(list(child.step([0, 1, 2], ["x"] * 3)))
        assert [row[0] for row in mixed] == alone[1:] == [row[2] for row in mixed]
        assert all(row[1] != row[0] for row in mixed)
        assert child.reset([1], [5])[0] == alone[0]


def test_numpy_comes_with_a_zygote_of_its_own(write: Callable[..., str]) -> None:
    pytest.importorskip("numpy")
    source = write(
        head="import numpy as np",
        reset=(
            "grid = np.random.rand(3, 3)\n"
            "return f'{grid.sum():.6f} {np.linalg.det(grid):.6f} {np.random.randint(9)}', info"
        ),
    )
    with SandboxPool() as pool:
        assert pool.stats()["zygotes"] == 1
        with pool.open_raw(source, instances=2) as child:
            assert child.inspect().findings == []
            loaded = child.load()
            assert loaded.raised is None, loaded
            first, second = child.reset([0, 1], [3, 4])
            assert isinstance(first, RawReset) and first != second
            assert child.reset([1], [3]) == [first]
        assert pool.stats()["zygotes"] == 2


def test_statistics_count_what_was_given_out(healthy: str) -> None:
    with SandboxPool(workers=3) as pool:
        assert pool.stats()["live"] == 0 and pool.stats()["workers"] == 3
        with pool.open_raw(healthy), pool.open_raw(healthy):
            found = pool.stats()
            assert (found["opened"], found["live"], found["restarts"]) == (2, 2, 0)
        assert pool.stats()["live"] == 0


def test_importing_the_package_starts_nothing_and_brings_nothing(repository: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys, spade_runtime.sandbox\n"
        "bad = {'pydantic', 'numpy', 'gymnasium', 'msgspec', 'pyseccomp'} & set(sys.modules)\n"
        "print(sorted(bad))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=repository, check=True
    )
    assert done.stdout.strip() == "[]"
