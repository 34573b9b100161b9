"""What Gymnasium's side costs: making, registering, spaces and vectors, beside Gymnasium's own.

Run it with ``python benchmarks/gymnasium_side.py [--json FILE] [--quick]``. Vectors of the same
class are stepped in turn with the peers, in short windows, so that a busy machine slows all of
them; each figure is the median of its windows, with the best (of a vector the quickest single
step) beside it. Where others compute too, a vector of 64 processes gets more of the machine than
one of two: the quickest step, and the processor time of a step, of the parent and all its
children, say what it costs whoever else is there. How often a vector of ours fits into
`AsyncVectorEnv` is told by all three.

The peers run the class in their own processes without isolation; ours runs it in the sandbox, and
tells of each step its turn, whether it solved the task, its fault and the action that was read
from the message. A peer is measured without any of it, and once more with the same.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import gymnasium
from _command_line import tell
from _timing import timed
from gymnasium.envs.registration import registry
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import spade_envs
from spade_envs.commands.list import command as list_command
from spade_envs.commands.pool import command as pool_command
from spade_envs.manifest import sealed, source_hash
from spade_envs.pool import Pool
from spade_envs.pool_index import insert
from spade_envs.shared import close_shared_pools, shared_pool
from spade_envs.spaces import UnicodeText
from spade_envs.vector import SpadeVectorEnv
from spade_runtime.sandbox.budget import cpu_clock
from spade_runtime.sandbox.facilities import machine
from spade_runtime.spec import EnvSpec

SOURCE = '''
class WalkEnv(TextEnv):
    """Walk along a line until the end is reached."""

    skill = "spatial_reasoning"
    max_turns = 100

    def reset(self, seed=None):
        self.place = random.Random(seed).randint(0, 9)
        return f"You stand at {self.place} of a line; say where to go next, please.", {}

    def step(self, action):
        self.place += 1
        return f"You stand at {self.place} of a line; say where to go next, please.", 0.0, False, \\
            self.place % 100 == 99, {}
'''
SIZES = (1, 8, 64, 256)
PEER = "AsyncVectorEnv (no isolation)"
ASYNC_MAX = 64
"""Processes of `AsyncVectorEnv` in a quick run."""


class Walk(gymnasium.Env[str, str]):
    """The same class for Gymnasium's own vectors."""

    observation_space = UnicodeText(1 << 19)
    action_space = UnicodeText(1 << 19)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = random.Random(seed).randint(0, 9)
        return f"You stand at {self.place} of a line; say where to go next, please.", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.place += 1
        said = f"You stand at {self.place} of a line; say where to go next, please."
        return said, 0.0, False, self.place % 100 == 99, {}


class ToldWalk(Walk):
    """The same with what `SpadeVectorEnv` tells in its infos."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        said, reward, terminated, truncated, info = super().step(action)
        info["spade"] = {"turn": self.place, "solved": False, "fault": None, "action": action}
        return said, reward, terminated, truncated, info


def making(times: int) -> dict[str, dict[str, float]]:
    name = "spade/RollingDie-v0"
    spec = gymnasium.spec(name)

    def first_reset() -> None:
        env = gymnasium.make(spec)
        env.reset(seed=1)
        env.close()

    gymnasium.make(name).reset(seed=1)
    return {
        "make(id)": timed(lambda: gymnasium.make(name), times),
        "make(EnvSpec)": timed(lambda: gymnasium.make(spec), times),
        "make and first reset": timed(first_reset, max(times // 10, 5)),
        "a space: UnicodeText": timed(lambda: UnicodeText(4096), times),
        "a space: Text of 62 characters": timed(lambda: gymnasium.spaces.Text(4096), times),
    }


def registering(count: int, times: int) -> dict[str, Any]:
    """A pool's index of `count` environments, and Gymnasium's own way for a tenth of them."""
    found: dict[str, Any] = {"count": count}
    kept = dict(registry)
    with tempfile.TemporaryDirectory() as folder:
        pool = Pool(folder, create=True)
        with pool.index.writing() as base:
            for number in range(count):
                spec = EnvSpec(
                    id=f"spade/Bench{number}-v0",
                    sha256=source_hash(str(number)),
                    kind="game",
                    title="Walk",
                    skill="spatial_reasoning",
                )
                insert(base, sealed(spec), None)
        found["register_pool"] = timed(lambda: spade_envs.register_pool(folder), times)
        found["make(id) among them"] = timed(lambda: gymnasium.make("spade/RollingDie-v0"), 20)
        found["registered()"] = timed(spade_envs.registered, times)
        for line in ("pool ls", "pool ls --json", "list", "list --json"):
            found[f"spade {line}"] = timed(said(line, folder), times)
    registry.clear()
    registry.update(kept)

    def one_by_one() -> None:
        for number in range(count // 10):
            gymnasium.register(f"spade/Peer{number}-v0", "spade_envs.env:SpadeEnv")
        registry.clear()
        registry.update(kept)

    found["gymnasium.register, a tenth"] = timed(one_by_one, 3)
    return found


def said(line: str, folder: str) -> Callable[[], None]:
    """A command about a pool, run in this process: what it takes when Python has started."""
    name, *words = line.split()
    command = {"list": list_command, "pool": pool_command}[name]
    parser = argparse.ArgumentParser()
    command.configure(parser)
    where = ["--pool", folder] if name == "list" else [folder]
    arguments = parser.parse_args([*words, *where])

    def run() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            command.run(arguments)

    return run


def containing(times: int) -> dict[str, Any]:
    plain = "The quick brown fox jumps over the lazy dog 1234567890" * 607
    text = plain[:32_768].replace(" ", "_")
    alphabet = "".join(sorted(set(text)))
    ours = UnicodeText(1 << 19)
    theirs = gymnasium.spaces.Text(32_768, charset=alphabet)
    mixed = text[:-64] + "ü中\U0001f600" * 8
    assert text in ours and text in theirs and mixed in ours
    return {
        "UnicodeText, ASCII": timed(lambda: text in ours, times),
        "UnicodeText, mixed scripts": timed(lambda: mixed in ours, times),
        "Text": timed(lambda: text in theirs, max(times // 10, 5)),
    }


def vectors(size: int, windows: int, seconds: float, quick: bool) -> dict[str, dict[str, float]]:
    """Environment steps a second, all stepped in turn, and processor time of each."""
    made: dict[str, Any] = {
        "SpadeVectorEnv": SpadeVectorEnv(size, source=SOURCE),
        "SyncVectorEnv (no isolation)": SyncVectorEnv([Walk] * size),
    }
    if size > 32:
        made["SpadeVectorEnv, one child"] = SpadeVectorEnv(size, source=SOURCE, per_child=size)
    if size <= ASYNC_MAX or not quick:
        made[PEER] = AsyncVectorEnv([Walk] * size, shared_memory=False)
        made["AsyncVectorEnv, the same infos"] = AsyncVectorEnv(
            [ToldWalk] * size, shared_memory=False
        )
    actions = ("onwards",) * size
    for vector in made.values():
        vector.reset(seed=1)
    rates: dict[str, list[float]] = {name: [] for name in made}
    costs: dict[str, list[float]] = {name: [] for name in made}
    quickest = dict.fromkeys(made, float("inf"))
    for _ in range(windows):
        for name, vector in made.items():
            gc.collect()
            steps, cpu, start = 0, processor(vector), time.perf_counter()
            now = start
            while now - start < seconds:
                began = now
                vector.step(actions)
                now = time.perf_counter()
                quickest[name] = min(quickest[name], now - began)
                steps += size
            rates[name].append(steps / (now - start))
            costs[name].append((processor(vector) - cpu) / steps)
    for vector in made.values():
        vector.close()
    return {
        name: {
            "median": statistics.median(seen),
            "best": size / quickest[name],
            "processor_seconds": statistics.median(costs[name]),
            "processor_seconds_best": min(costs[name]),
        }
        for name, seen in rates.items()
    }


def compared(group: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """How many times the peer's speed a vector of ours has, and how often its processor time fits.

    The peer tells nothing of what ours tells in its infos.
    """
    peer = group.get(PEER)
    if peer is None:
        return {}
    return {
        name: {
            "median": found["median"] / peer["median"],
            "best": found["best"] / peer["best"],
            "processor_time": peer["processor_seconds"] / found["processor_seconds"],
            "processor_time_best": peer["processor_seconds_best"] / found["processor_seconds_best"],
        }
        for name, found in group.items()
        if name.startswith("SpadeVectorEnv")
    }


def processor(vector: Any) -> float:
    """Processor time of this process and a vector's children so far, in seconds."""
    if isinstance(vector, SpadeVectorEnv):
        return time.process_time() + vector.cpu_seconds
    workers = getattr(vector, "processes", ())
    return time.process_time() + sum(cpu_clock(worker.pid) for worker in workers)


def measure(quick: bool) -> dict[str, Any]:
    times, windows, seconds = (50, 10, 0.1) if quick else (300, 70, 0.1)
    report: dict[str, Any] = {"machine": machine(), "load": os.getloadavg()}
    report["isolation"] = shared_pool().isolation
    report["making"] = making(times)
    report["registering"] = registering(10_000, 5)
    report["contains, 32,768 characters"] = containing(times)
    report["vector, steps/s"] = {
        str(size): vectors(size, windows, seconds, quick) for size in SIZES
    }
    report["times AsyncVectorEnv"] = {
        size: compared(group) for size, group in report["vector, steps/s"].items()
    }
    close_shared_pools()
    return report


def table(report: dict[str, Any]) -> str:
    def row(name: str, found: dict[str, float], unit: float, digits: int = 2) -> str:
        median, best = found["median"] * unit, found["best"] * unit
        return f"{name:<58}{median:12,.{digits}f} {best:12,.{digits}f}"

    lines = [f"{report['isolation']}; load {report['load'][0]:.1f}"]
    lines.append(f"{'':<58}{'median':>12} {'best':>12}")
    for name, found in report["making"].items():
        lines.append(row(f"{name} (us)", found, 1e6))
    for name, found in report["registering"].items():
        if name != "count":
            lines.append(row(f"10,000 ids: {name} (ms)", found, 1e3))
    for name, found in report["contains, 32,768 characters"].items():
        lines.append(row(f"contains 32,768 characters: {name} (us)", found, 1e6))
    for size, group in report["vector, steps/s"].items():
        for name, found in group.items():
            cost = found["processor_seconds"] * 1e6
            steps = row(f"{size:>4} environments: {name} (steps/s)", found, 1, 0)
            lines.append(f"{steps} {cost:9.2f} us of processor time a step")
        for name, times in report["times AsyncVectorEnv"][size].items():
            found = row(f"{size:>4} environments: {name}, times AsyncVectorEnv", times, 1, 1)
            lines.append(f"{found} {times['processor_time']:9.1f} times in processor time")
    return "\n".join(lines)


if __name__ == "__main__":
    tell(__doc__, measure, table)
