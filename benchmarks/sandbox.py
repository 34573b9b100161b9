"""What the sandbox costs, beside Gymnasium's AsyncVectorEnv and the same class in this process.

Run it with ``python benchmarks/sandbox.py [--json FILE] [--quick]``. Every figure is the median of
many; the best one stands beside it, since a busy machine moves the median. Nothing is cached
between figures.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from _command_line import tell
from _timing import timed

from spade_runtime.sandbox import orders
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.drive import drive
from spade_runtime.sandbox.facilities import machine
from spade_runtime.sandbox.pool import SandboxPool

SOURCE = '''
class WalkEnv(TextEnv):
    """Walk along a line until the end is reached."""

    skill = "spatial_reasoning"

    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.place = self.rng.randint(0, 9)
        return f"You stand at {self.place}.", {}

    def step(self, action):
        self.place += 1
        return f"You stand at {self.place}.", 0.0, False, False, {}
'''
GROUPS = (1, 4, 16, 64)


class Walk(gymnasium.Env[str, str]):
    """The same class for Gymnasium's own vector environments."""

    observation_space = gymnasium.spaces.Text(64)
    action_space = gymnasium.spaces.Text(64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(10))
        return f"You stand at {self.place}.", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.place += 1
        return f"You stand at {self.place}.", 0.0, False, False, {}


def scaled(found: dict[str, float], by: float) -> dict[str, float]:
    return {name: value / by for name, value in found.items()}


def opened(pool: SandboxPool, count: int) -> RawChild:
    child = pool.open_raw(SOURCE, instances=count)
    child.inspect()
    loaded = child.load()
    assert loaded.raised is None, loaded
    child.reset(range(count), range(count))
    return child


def cold(times: int) -> dict[str, float]:
    def start() -> None:
        SandboxPool().close()

    return timed(start, times)


def warm(pool: SandboxPool, times: int, policy: str) -> dict[str, dict[str, float]]:
    """Acquire, load, reset and the first step, from a child that was kept ready."""
    acquire, whole = [], []
    for _ in range(times):
        time.sleep(0.01)  # the next child is made ready meanwhile
        start = time.perf_counter()
        child = pool.open_raw(SOURCE, policy=policy)  # type: ignore[arg-type]
        acquire.append(time.perf_counter() - start)
        child.inspect()
        child.load()
        child.reset([0], [1])
        child.step([0], ["go"])
        whole.append(time.perf_counter() - start)
        child.kill()
    return {
        "acquire": {"median": statistics.median(acquire), "best": min(acquire)},
        "whole": {"median": statistics.median(whole), "best": min(whole)},
    }


def stages(pool: SandboxPool, times: int) -> dict[str, dict[str, float]]:
    """Processor time of a child and pages that it copied, for each request until its first step."""
    seen: dict[str, list[tuple[float, int]]] = {}
    for _ in range(times):
        time.sleep(0.01)
        child = pool.open_raw(SOURCE)
        requests: dict[str, Callable[[], object]] = {
            "inspect": child.inspect,
            "load": child.load,
            "reset": lambda child=child: child.reset([0], [1]),  # type: ignore[misc]
            "first step": lambda child=child: child.step([0], ["go"]),  # type: ignore[misc]
            "second step": lambda child=child: child.step([0], ["go"]),  # type: ignore[misc]
        }
        for name, request in requests.items():
            cpu, pages = child.cpu_seconds, _faults(child.pid)
            request()
            seen.setdefault(name, []).append((child.cpu_seconds - cpu, _faults(child.pid) - pages))
        child.kill()
    return {
        name: {
            "median": statistics.median(cpu for cpu, _ in found),
            "best": min(cpu for cpu, _ in found),
            "pages": statistics.median(pages for _, pages in found),
        }
        for name, found in seen.items()
    }


def _faults(pid: int) -> int:
    """Minor page faults of a process: pages that it copied, or had made."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


def spawn(pool: SandboxPool, times: int) -> dict[str, float]:
    """Fork, lockdown and greeting, with nothing made ready beforehand."""
    nursery = pool._nursery(())

    def one() -> None:
        child = nursery.take(500)
        while not _readable(child.replies):
            pass
        child.kill()
        nursery.forget(child)
        child.close()

    return timed(one, times)


def _readable(descriptor: int) -> bool:
    try:
        return bool(os.read(descriptor, 4))
    except BlockingIOError:
        time.sleep(0.0001)
        return False


def groups(pool: SandboxPool, times: int) -> dict[str, dict[str, float]]:
    found = {}
    child = opened(pool, max(GROUPS))
    for count in GROUPS:
        slots, actions = list(range(count)), ["go"] * count
        found[str(count)] = scaled(timed(lambda s=slots, a=actions: child.step(s, a), times), count)
    child.kill()
    return found


def many(pool: SandboxPool, classes: int, each: int, rounds: int) -> float:
    """Steps a second of `classes` children with `each` instances, all stepped at once."""
    children = [opened(pool, each) for _ in range(classes)]
    slots, actions = list(range(each)), ["go"] * each

    def one() -> None:
        drive([(child, orders.step(pool.limits, slots, actions)) for child in children])

    best = timed(one, rounds)["median"]
    for child in children:
        child.kill()
    return classes * each / best


def idle_mib(pool: SandboxPool, count: int = 32) -> dict[str, float]:
    """Mean proportional set size of `count` idle children in MiB; needs the right to read it."""
    nursery = pool._nursery(())
    blank = [nursery.take(pool.limits.memory_mib) for _ in range(count)]
    found = {"blank": _pss([child.pid for child in blank])}
    for one in blank:
        one.kill()
        nursery.forget(one)
        one.close()
    children = [opened(pool, 1) for _ in range(count)]
    found["loaded"] = _pss([child.pid for child in children])
    for child in children:
        child.kill()
    return found


def _pss(pids: list[int]) -> float:
    try:
        texts = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in pids]
    except PermissionError:
        return float("nan")
    lines = [line for text in texts for line in text.splitlines() if line.startswith("Pss:")]
    return statistics.mean(int(line.split()[1]) for line in lines) / 1024


def vector(count: int, times: int) -> dict[str, float]:
    """One step of Gymnasium's AsyncVectorEnv, without shared memory."""
    environments = gymnasium.vector.AsyncVectorEnv([Walk] * count, shared_memory=False)
    environments.reset(seed=list(range(count)))
    actions = np.array(["go"] * count, dtype=object)
    found = scaled(timed(lambda: environments.step(tuple(actions)), times), count)
    environments.close()
    return found


def floor(times: int) -> dict[str, float]:
    """The same class stepped in this process: no wall in between, and no protection."""
    environment = Walk()
    environment.reset(seed=1)
    return scaled(timed(lambda: [environment.step("go") for _ in range(100)], times), 100)


def measure(quick: bool) -> dict[str, Any]:
    few, several, lots = (3, 20, 300) if quick else (7, 100, 3000)
    report: dict[str, Any] = {"machine": machine(), "load": os.getloadavg()}
    report["cold start"] = cold(few)
    with SandboxPool(workers=64) as pool:
        report["isolation"] = pool.isolation
        report["spawn"] = spawn(pool, several)
        for policy in ("on", "off"):
            report[f"warm, policy {policy}"] = warm(pool, several, policy)
        report["processor time until the first step"] = stages(pool, several)
        report["idle child PSS MiB"] = idle_mib(pool)
        report["step"] = groups(pool, lots)
        report["steps/s, 256 over 16 classes"] = many(pool, 16, 16, lots // 10)
        report["steps/s, 256 over 64 classes"] = many(pool, 64, 4, lots // 10)
    report["AsyncVectorEnv"] = {str(count): vector(count, lots // 3) for count in GROUPS[:3]}
    report["in process"] = floor(lots)
    return report


def table(report: dict[str, Any]) -> str:
    def both(found: dict[str, float], unit: float) -> str:
        return f"{found['median'] * unit:9.2f} {found['best'] * unit:9.2f}"

    lines = [f"{report['isolation']}; load {report['load'][0]:.1f}", f"{'':<44}   median      best"]
    lines.append(f"{'zygote, cold start (ms)':<44}{both(report['cold start'], 1e3)}")
    lines.append(f"{'spawn: fork, lockdown, greeting (ms)':<44}{both(report['spawn'], 1e3)}")
    for policy in ("on", "off"):
        found = report[f"warm, policy {policy}"]
        name = f"acquire a warm child, policy {policy} (ms)"
        lines.append(f"{name:<44}{both(found['acquire'], 1e3)}")
        name = f"... load, reset, first step, policy {policy} (ms)"
        lines.append(f"{name:<44}{both(found['whole'], 1e3)}")
    for name, found in report["processor time until the first step"].items():
        text = f"... {name}: the child's processor time (ms)"
        lines.append(f"{text:<44}{both(found, 1e3)} {found['pages']:6.0f} pages")
    for count, found in report["step"].items():
        peer = report["AsyncVectorEnv"].get(count)
        lines.append(f"{f'step, {count} instances of a child (us each)':<44}{both(found, 1e6)}")
        if peer:
            lines.append(f"{f'... AsyncVectorEnv of {count} (us each)':<44}{both(peer, 1e6)}")
    lines.append(f"{'in this process (us each)':<44}{both(report['in process'], 1e6)}")
    for classes in (16, 64):
        rate = report[f"steps/s, 256 over {classes} classes"]
        lines.append(f"{f'256 instances over {classes} classes (steps/s)':<44}{rate:9.0f}")
    for state, size in report["idle child PSS MiB"].items():
        lines.append(f"{f'idle child of 32, {state}, PSS (MiB)':<44}{size:9.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    tell(__doc__, measure, table)
