"""`SandboxPool`: the public face of the sandbox."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from spade_runtime.errors import HostError, IsolationUnavailable, UsageError
from spade_runtime.sandbox import programs
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.facilities import (
    LAYERS,
    Facilities,
    check_level,
    require,
    supported,
)
from spade_runtime.sandbox.forks import generation, must_be_own
from spade_runtime.sandbox.herd import Herd
from spade_runtime.sandbox.nursery import Nursery
from spade_runtime.sandbox.opening import prepare, read_text
from spade_runtime.sandbox.preload import NUMPY, PLAIN
from spade_runtime.sandbox.programs import ProgramResult
from spade_runtime.sandbox.readings import Readings
from spade_runtime.sandbox.syscalls import allow_list
from spade_runtime.sandbox.wire import Reading
from spade_runtime.sandbox.workers import Workers
from spade_runtime.spec import EnvSpec, IsolationLevel, Limits

if TYPE_CHECKING:
    from spade_runtime.sandbox.session import EnvSession

Policy = Literal["on", "off"]
Sharing = Literal["class", "instance"]


class SandboxPool:
    """Gives out locked-down children, each for one environment class. Thread-safe.

    A pool owns one zygote for each preload set, started when it is first needed, and keeps a
    locked-down child ready. A child serves one class once and is never given out again.

    Args:
        level: `strict` refuses to start where the machine can't isolate; `best_effort` takes what
            there is; `none` is for trusted code.
        policy: `off` runs sources without the static policy and its guards: the isolation holds
            by itself.
        limits: limits of every child that is opened without its own.
        hash_seed: the children's PYTHONHASHSEED. Training uses one; validation replays in a
            second pool with another.
        start_time: whole seconds by which the children's real monotonic clock is ahead, where the
            kernel can shift it, so that a replay sees a class that got at it.
        workers: children that may compute at once; more requests wait their turn. The machine's
            processors by default.
        total_memory_mib: memory of all children of one zygote together, kept by a control group
            where one can be had; `isolation` says whether it was.
        layers: layers of isolation to put on, for tests of each one alone.

    Attributes:
        isolation: the level and what is in force, as reports record it.

    Raises:
        IsolationUnavailable: the level can't be had here; the message names what is missing.
    """

    def __init__(
        self,
        *,
        level: IsolationLevel = "strict",
        policy: Policy = "on",
        limits: Limits | None = None,
        hash_seed: int = 0,
        start_time: float | None = None,
        workers: int | None = None,
        total_memory_mib: int | None = None,
        layers: frozenset[str] | None = None,
    ) -> None:
        check_level(level)
        if not supported():
            raise IsolationUnavailable(
                "the sandbox needs Linux; on this system run it in a Linux container or machine"
            )
        self.level = level
        self.policy = policy
        self.limits = limits or Limits()
        self._hash_seed = hash_seed
        self._start_time = start_time
        self._total_mib = total_memory_mib
        self.workers = workers or len(os.sched_getaffinity(0))
        self._running = Workers(self.workers)
        chosen = frozenset(LAYERS) if layers is None else layers
        self._layers = frozenset({"rlimits"}) if level == "none" else chosen
        self._lock = threading.Lock()
        self._nurseries: dict[tuple[str, ...], Nursery] = {}
        self._closed = False
        self._born = generation()
        self._readings = Readings()
        self._opened = 0
        self._restarts = 0
        self._lost_spawns = 0
        first = self._nursery(PLAIN)
        self.facilities: Facilities = first.facilities
        parts = ", ".join([*self.facilities.parts(), *(["cgroup"] if first.grouped else [])])
        self.isolation = f"{level} ({parts})" if parts else level

    def open(
        self,
        source: str | Path | EnvSpec,
        *,
        instances: int = 1,
        limits: Limits | None = None,
        isolation: Sharing = "class",
    ) -> EnvSession:
        """Run the static gates, load the class, and give a session of `instances` of it.

        Args:
            source: the text of an environment, or the path of its file.
            instances: how many are played side by side.
            limits: limits of this session alone.
            isolation: `class` puts all instances into one child, `instance` gives each its own.

        Raises:
            InvalidEnvironment: a static gate rejects the source.
            EnvFault: the module raises, hangs or breaks something while it loads.
            HostError: the machine is at fault.
        """
        if isinstance(source, EnvSpec):
            raise UsageError("a manifest has no source in it; pass the text or the path of env.py")
        from spade_runtime.sandbox.session import EnvSession

        text = read_text(source, limit=(limits or self.limits).source_bytes)
        child, spec = self._loaded(text, instances, limits, isolation)
        try:
            return EnvSession(
                child, spec, reopen=lambda: self._loaded(text, instances, limits, isolation)[0]
            )
        except BaseException:
            child.kill()
            raise

    def _loaded(
        self, text: str, instances: int, limits: Limits | None, isolation: Sharing
    ) -> tuple[RawChild | Herd, EnvSpec]:
        def one(slots: int) -> RawChild:
            child = self.open_raw(text, instances=slots, limits=limits)
            try:
                specs.append(prepare(child, text))
            except BaseException:
                child.kill()
                raise
            return child

        specs: list[EnvSpec] = []
        if isolation == "class" or instances == 1:
            return one(instances), specs[0]
        children: list[RawChild] = []
        try:
            for _ in range(instances):
                children.append(one(1))
        except BaseException:
            for child in children:
                child.kill()
            raise
        return Herd(children, lambda: one(1)), specs[0]

    def open_raw(
        self,
        source: str,
        *,
        instances: int = 1,
        limits: Limits | None = None,
        policy: Policy | None = None,
    ) -> RawChild:
        """Give out a fresh child for a source; nothing has been sent to it yet.

        Args:
            source: the text of the environment.
            instances: how many slots will be used.
            limits: limits of this child alone.
            policy: overrides the pool's.

        Raises:
            HostError: the zygote can't be had.
        """
        limits = limits or self.limits
        preload, memory = self._needs(source, limits)
        chosen = policy or self.policy
        self._opened += 1
        return self._child(source, preload, memory, instances, limits, policy=chosen == "on")

    def run_program(
        self,
        source: str,
        *,
        stdin: str = "",
        argv: Sequence[str] = (),
        preload: Sequence[str] = (),
        limits: Limits | None = None,
    ) -> ProgramResult:
        """Run a whole untrusted program under the same isolation, with the policy off.

        Args:
            source: the program's text; it runs as `__main__`.
            stdin: what it reads.
            argv: its arguments, without its name.
            preload: modules that it imports beside those of the contract; they run outside of the
                isolation when they are imported, so name only what you trust.
            limits: `load_seconds` is the program's processor time, `printed_bytes` its output's.

        Raises:
            EnvTimeout: it did not end in time.
            EnvMemoryExceeded: it ended for lack of memory.
            EnvOutputTooLarge: it printed too much.
            EnvCrashed: its process died, or left without Python's knowing.
            UsageError: a module to preload is not installed.
        """
        limits = limits or self.limits
        modules, memory = self._needs(source, limits)
        self._opened += 1
        child = self._child(source, (*modules, *preload), memory, 1, limits, policy=False)
        with child:
            return programs.run(child, source, stdin, argv, missing=child.missing & set(preload))

    def _child(
        self,
        source: str,
        preload: tuple[str, ...],
        memory_mib: int,
        instances: int,
        limits: Limits,
        *,
        policy: bool,
    ) -> RawChild:
        must_be_own(self._born)

        def ask() -> Reading:
            with self._child(source, preload, memory_mib, 1, limits, policy=policy) as child:
                return child.read()

        def read() -> Reading:
            return self._readings.of(source, policy=policy, read=ask)

        nursery = self._nursery(preload)
        try:
            hatchling = nursery.take(memory_mib)
        except HostError:
            if nursery.alive:
                raise
            # It was lost since it was last asked; nothing of this source has run yet.
            nursery = self._nursery(preload)
            hatchling = nursery.take(memory_mib)
        return RawChild(
            nursery,
            hatchling,
            source,
            instances=instances,
            limits=limits,
            policy=policy,
            read=read,
            workers=self._running,
            isolation=self.isolation,
        )

    def stats(self) -> dict[str, Any]:
        """Counts since the start: children given out, forked, kept ready, zygote restarts."""
        with self._lock:
            nurseries = dict(self._nurseries)
        return {
            "opened": self._opened,
            "spawned": self._lost_spawns + sum(one.spawned for one in nurseries.values()),
            "live": sum(one.spawned - one.gone - len(one.pids()) for one in nurseries.values()),
            "ready": sum(len(one.pids()) for one in nurseries.values()),
            "zygotes": len(nurseries),
            "restarts": self._restarts,
            "workers": self.workers,
        }

    @property
    def alive(self) -> bool:
        """Whether all zygotes that were started still run."""
        with self._lock:
            return all(nursery.alive for nursery in self._nurseries.values())

    def close(self) -> None:
        """End every zygote and with it every child; may be called twice.

        In a process that was forked off it does nothing: they are not its own.
        """
        if self._born != generation():
            return
        with self._lock:
            self._closed = True
            nurseries = list(self._nurseries.values())
            self._nurseries.clear()
        for nursery in nurseries:
            nursery.close()

    def __enter__(self) -> SandboxPool:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def _needs(self, source: str, limits: Limits) -> tuple[tuple[str, ...], int]:
        """Preload set and memory in MiB; a word in the text is enough to get the larger ones."""
        if "numpy" in source or "networkx" in source:
            return NUMPY, limits.numpy_memory_mib
        return PLAIN, limits.memory_mib

    def _filter(self) -> tuple[bytes, str]:
        """The seccomp filter, or none and the reason where the level can do without."""
        if "seccomp" not in self._layers:
            return b"", ""
        try:
            return allow_list(), ""
        except IsolationUnavailable as missing:
            if self.level not in ("best_effort", "none"):
                raise
            return b"", str(missing)

    def _nursery(self, preload: tuple[str, ...]) -> Nursery:
        with self._lock:
            if self._closed:
                raise RuntimeError("this pool is closed")
            nursery = self._nurseries.get(preload)
            if nursery is not None and nursery.alive:
                return nursery
            if nursery is not None:
                self._restarts += 1
                self._lost_spawns += nursery.spawned
                nursery.close()
            program, problem = self._filter()
            memory = self.limits.memory_mib if preload == PLAIN else self.limits.numpy_memory_mib
            nursery = Nursery(
                layers=self._layers,
                program=program,
                hash_seed=self._hash_seed,
                preload=preload,
                memory_mib=memory,
                total_mib=self._total_mib,
                clock_shift=int(self._start_time or 0),
            )
            if problem:
                nursery.facilities.problems["seccomp"] = problem
            self._nurseries[preload] = nursery
        try:
            require(self.level, nursery.facilities)
        except IsolationUnavailable:
            nursery.close()
            raise
        return nursery
