"""A million steps over classes of which some misbehave: nothing healthy is lost, nothing grows."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from spade_runtime.errors import EnvFault
from spade_runtime.sandbox import orders
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.drive import drive
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.wire import RawStep
from spade_runtime.spec import Limits

pytestmark = [pytest.mark.hostile, pytest.mark.slow]

CLASSES, SLOTS, ROUNDS = 24, 32, 50
STEPS = 1_000_000
MISBEHAVE = [
    "while True:\n    pass",
    "import os\nos._exit(3)",
    "rows = []\nwhile True:\n    rows.append('x' * 10 ** 6)",
    "import os\nos.write(4, b'x' * 100)",
    "import os\nos.abort()",
    "print('x' * 10 ** 6)",
    "said = 'x' * 10 ** 6",
]


def resident_kib() -> int:
    text = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS"))


def test_hostile_soak_of_a_million_steps(write: Callable[..., str]) -> None:
    limits = Limits(step_seconds=0.3, memory_mib=128, wall_factor=20)
    good = write(init="self.count = 0", step="self.count += 1\nsaid = f'{action} {self.count}'")
    slots, steps, opened, lost, begin_kib, begin_fds = range(SLOTS), 0, 0, 0, 0, 0
    with SandboxPool(policy="off", limits=limits) as pool:
        while steps < STEPS:
            flock: list[tuple[RawChild, bool]] = []
            for _ in range(CLASSES):
                opened += 1
                bad = opened % 100 == 0
                turn = "if self.count == 7:\n" + "\n".join(
                    f"    {line}" for line in MISBEHAVE[opened // 100 % len(MISBEHAVE)].splitlines()
                )
                step = f"self.count += 1\n{turn}"
                source = write(init="self.count = 0", step=step) if bad else good
                child = pool.open_raw(source, instances=SLOTS)
                child.inspect()
                assert child.load().raised is None
                child.reset(slots, slots)
                flock.append((child, bad))
            for place in range(1, ROUNDS + 1):
                actions = [f"{place}/{slot}" for slot in slots]
                running = [(child, bad) for child, bad in flock if child.fault is None]
                found = drive([(one, orders.step(limits, slots, actions)) for one, _ in running])
                for (_, bad), items in zip(running, found, strict=True):
                    if bad:
                        lost += isinstance(items, EnvFault)
                        continue
                    steps += SLOTS
                    assert not isinstance(items, EnvFault), items
                    assert items == [
                        RawStep(f"{action} {place}", 0.0, False, False, b"{}") for action in actions
                    ]
            for child, _ in flock:
                child.kill()
            if not begin_kib:
                gc.collect()
                begin_kib, begin_fds = resident_kib(), len(list(Path("/proc/self/fd").iterdir()))
        gc.collect()
        end_kib = resident_kib()
        print(
            f"soak: {steps} steps of healthy classes, none lost; {lost} faults of the others, "
            f"{opened} children; memory {begin_kib} KiB at the begin, {end_kib} KiB at the end"
        )
        assert pool.stats()["live"] == 0
        assert len(list(Path("/proc/self/fd").iterdir())) <= begin_fds + 3
        assert end_kib < begin_kib + 8 * 1024
        assert lost >= 3
