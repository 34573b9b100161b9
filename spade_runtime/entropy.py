"""Chance, clock and identity of an environment, all derived from its reset seed.

Every instance in a child has a state of its own. The curated modules of `spade_runtime.views` read
`Entropy.current`, so switching from one instance to another is one assignment: saving and
restoring Python's global generator would cost 21 us instead (runtime.md section 5).

Seeds come from SHA-256 of a label, never from `hash()`, so they do not depend on the hash seed.
"""

from __future__ import annotations

import hashlib
import random
import sys
from typing import Any

# 2026-01-05 09:00:00 UTC, a Monday: the moment at which every episode begins.
CLOCK_START_NS = 1_767_603_600_000_000_000
# What `monotonic`, `perf_counter` and `process_time` show at that moment.
MONOTONIC_START_NS = 1_000_000_000_000
TICK_NS = 1_000_000


def derive(label: str, seed: int) -> int:
    """Derive the 128-bit seed of one stream.

    >>> derive("uuid", 7) == derive("uuid", 7) != derive("entropy", 7)
    True
    """
    return int.from_bytes(hashlib.sha256(f"spade/{label}/{seed}".encode()).digest()[:16], "big")


class InstanceState:
    """What one instance of an environment draws from.

    Attributes:
        seed: the reset seed, an integer in [0, 2**31).
        elapsed_ns: nanoseconds that have passed on the instance's clock.
    """

    __slots__ = ("_fresh", "_numpy", "_real", "_rng", "_uuid", "elapsed_ns", "seed")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.elapsed_ns = 0
        # Seeding a generator takes longer than most classes' `reset`, and many draw from their own.
        self._rng: random.Random | None = None
        self._uuid: random.Random | None = None
        self._fresh: random.Random | None = None
        self._numpy: Any = None
        # State of Python's and numpy's global generators, while another instance plays.
        self._real: tuple[Any, Any] | None = None

    @property
    def rng(self) -> random.Random:
        """What the curated module `random` draws from.

        `random.Random(seed)`, so that the functions of the module give what they would give after
        `random.seed(seed)`.
        """
        if self._rng is None:
            self._rng = random.Random(self.seed)
        return self._rng

    @property
    def uuid(self) -> random.Random:
        """The generator that uuids come from."""
        if self._uuid is None:
            self._uuid = random.Random(derive("uuid", self.seed))
        return self._uuid

    def fresh(self) -> int:
        """A new 128-bit seed, where ordinary Python would ask the operating system for one."""
        if self._fresh is None:
            self._fresh = random.Random(derive("entropy", self.seed))
        return self._fresh.getrandbits(128)

    @property
    def numpy(self) -> Any:
        """The `numpy.random.RandomState` behind the functions of `numpy.random`."""
        if self._numpy is None:
            self._numpy = sys.modules["numpy.random"].RandomState(self.seed & 0xFFFFFFFF)
        return self._numpy

    def tick(self) -> int:
        """Read the clock: nanoseconds since the episode began; a read takes a millisecond."""
        self.elapsed_ns += TICK_NS
        return self.elapsed_ns

    def now_ns(self) -> int:
        """Nanoseconds since 1970 on the instance's clock."""
        return CLOCK_START_NS + self.tick()

    def monotonic_ns(self) -> int:
        """Nanoseconds of the clocks that have no date."""
        return MONOTONIC_START_NS + self.tick()

    def sleep(self, seconds: float) -> None:
        """Let time pass without waiting for it.

        Raises:
            ValueError: `seconds` is negative or not a number, as `time.sleep` has it.
        """
        passed = float(seconds)
        if not 0.0 <= passed <= 1e9:
            raise ValueError("sleep length must be between 0 and 1e9 seconds")
        self.elapsed_ns += int(passed * 1e9)


class Entropy:
    """The states of a child's instances, and which one plays.

    Args:
        real_generators: also keep Python's and numpy's *global* generators apart between instances.
            Only libraries that draw from them behind the curated modules (networkx) need that; it
            costs some 20 us a switch.

    Attributes:
        current: the state of the instance that plays. While the module loads it is a state of its
            own with a fixed seed.
        violations: what the run-time guards refused, in order. A guard also raises, but the code
            may catch that; the child reports what stands here whatever happened to the exception.
    """

    __slots__ = ("current", "real_generators", "violations")

    def __init__(self, *, real_generators: bool = False) -> None:
        self.real_generators = real_generators
        self.current = InstanceState(derive("load", 0) & 0x7FFFFFFF)
        self.violations: list[BaseException] = []

    def new(self, seed: int) -> InstanceState:
        """Make the state of a fresh instance and let it play."""
        state = InstanceState(seed)
        if self.real_generators:
            self.activate(state)
            _seed_real(seed)
        self.current = state
        return state

    def activate(self, state: InstanceState) -> None:
        """Let an instance play; from here on every draw and clock read is its own."""
        if self.real_generators and state is not self.current:
            self.current._real = _save_real()
            if state._real is not None:
                _restore_real(state._real)
        self.current = state


def _seed_real(seed: int) -> None:
    random.seed(seed)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(seed & 0xFFFFFFFF)


def _save_real() -> tuple[Any, Any]:
    numpy_random = sys.modules.get("numpy.random")
    return random.getstate(), numpy_random.get_state() if numpy_random else None


def _restore_real(saved: tuple[Any, Any]) -> None:
    random.setstate(saved[0])
    if saved[1] is not None:
        sys.modules["numpy.random"].set_state(saved[1])
