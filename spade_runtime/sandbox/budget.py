"""How long a request may take: processor time decides, the wall clock is the backstop.

The child's processor time is read from the kernel, never asked of the child. A batch of K calls
has K times one call's time, and one call's time since the last item that came.
"""

from __future__ import annotations

import contextlib
import math
import random
import resource
import time
from pathlib import Path

SLACK_SECONDS = 0.03
"""A child reports the items of a batch every 5 ms: that and the wake-up are not the call's."""
_GRANT_STEP_SECONDS = 30.0
LOOK_SECONDS = 0.05
"""A call that is slow is looked at about this often, to tell a child that sleeps from one that
waits. When, is drawn: one that knew could be awake for the look alone, and pass for starved."""
STARVED_FACTOR = 4.0
"""A starved child, which did nothing wrong, gets this many times the wall clock's backstop."""

_draw = random.SystemRandom().random


def look_seconds() -> float:
    """How long until the next look at a slow call."""
    return LOOK_SECONDS * (0.5 + _draw())


def cpu_clock(pid: int) -> float:
    """Processor time of a process in seconds.

    Raises:
        OSError: the process is gone.
    """
    # The kernel's number for "the processor clock of this process" (clock_getcpuclockid).
    return time.clock_gettime((~pid << 3) | 2)


def run_delay(pid: int) -> float | None:
    """Seconds that a process was runnable and waited for a processor, None where unknown."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return None


def asleep(pid: int) -> bool:
    """Whether a process sleeps or blocks at this moment, rather than runs or waits to run."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state in "SD"


class Budget:
    """The time of one request.

    Args:
        pid: the child.
        seconds: processor time of one call.
        count: calls in the request.
        wall_factor: the wall clock stops a call at this many times its processor time.
    """

    __slots__ = (
        "_cpu_mark",
        "_look_cpu",
        "_look_delay",
        "_look_wall",
        "_looks",
        "_looks_asleep",
        "_wall_mark",
        "count",
        "cpu_at_start",
        "pid",
        "seconds",
        "wall_seconds",
        "wall_start",
    )

    def __init__(self, pid: int, seconds: float, count: int, wall_factor: float) -> None:
        self.pid = pid
        self.seconds = seconds
        self.count = count
        self.wall_seconds = seconds * wall_factor
        self.wall_start = self._wall_mark = time.monotonic()
        self.cpu_at_start = self._cpu_mark = self._cpu()
        # The first look that found the call slow: run delay is measured from there on, since
        # reading it costs as much as a step.
        self._look_wall: float | None = None
        self._look_cpu = 0.0
        self._look_delay: float | None = None
        self._looks = 0
        self._looks_asleep = 0

    def passed(self) -> float:
        """Seconds since the request began."""
        return time.monotonic() - self.wall_start

    def wait_ms(self) -> int:
        """How long to wait before `spent` must be asked; at least one millisecond."""
        since = time.monotonic() - self._wall_mark
        if self._look_wall is None:
            # Nobody uses more processor time than wall time, so the first look can wait.
            return max(1, math.ceil((self.seconds + SLACK_SECONDS - since) * 1000))
        left = self.seconds + SLACK_SECONDS - (self._cpu() - self._cpu_mark)
        wall = self.wall_seconds - since
        left = min(left, wall if wall > 0 else left, look_seconds())
        return max(5, math.ceil(left * 1000))

    def progress(self) -> bool:
        """Note that an item came, so that the next call's time begins.

        Returns:
            Whether the call that ended kept within its time.
        """
        now = time.monotonic()
        since = now - self._wall_mark
        if since > SLACK_SECONDS:
            if since > self.seconds and self.over_cpu():
                return False
            self._cpu_mark = self._cpu()
            self._wall_mark = now
            self._look_wall = None
        return True

    def spent(self) -> bool:
        """Whether the time is up; looks at the kernel's clocks."""
        if self._look_wall is None:
            self._look_delay = run_delay(self.pid)
            self._look_cpu = self._cpu() - self._cpu_mark
            self._look_wall = time.monotonic()
            self._looks = self._looks_asleep = 0
        self._looks += 1
        self._looks_asleep += asleep(self.pid)
        return self.over_cpu() or self.over_wall()

    def starved(self) -> bool:
        """Whether the host kept a runnable child from running.

        A child has time of its own while it computes, sleeps or blocks. One that had less of it
        than a call may use was starved. Two accounts of it are taken, and the smaller one counts:
        the scheduler's run delay, which misses what a hypervisor took, and how often the child was
        found asleep.
        """
        if self._look_wall is None:
            return False
        passed = time.monotonic() - self._look_wall
        own = self._look_cpu + passed
        delay = run_delay(self.pid)
        if delay is not None and self._look_delay is not None:
            own -= delay - self._look_delay
        slept = passed * self._looks_asleep / max(1, self._looks)
        # With the slack that computing has: between the two it would be taken for asleep.
        return min(own, self._cpu() - self._cpu_mark + slept) < self.seconds + SLACK_SECONDS

    def over_cpu(self) -> bool:
        """Whether one call, or all of them, used more processor time than allowed."""
        cpu = self._cpu()
        return (
            cpu - self._cpu_mark >= self.seconds + SLACK_SECONDS
            or cpu - self.cpu_at_start >= self.seconds * self.count + SLACK_SECONDS
        )

    def over_wall(self) -> bool:
        """Whether the wall clock's backstop is reached; it is longer for a starved child."""
        now = time.monotonic()
        since, total = now - self._wall_mark, now - self.wall_start
        most, all_most = self.wall_seconds, self.wall_seconds * self.count
        if since < most and total < all_most:
            return False
        over = since >= STARVED_FACTOR * most or total >= STARVED_FACTOR * all_most
        return over or not self.starved()

    def _cpu(self) -> float:
        try:
            return cpu_clock(self.pid)
        except OSError:
            return 0.0  # it ended; the pipe says so, and how


def grant(pid: int, budget: Budget, seconds: float, granted: float) -> float:
    """Raise the kernel's own limit, which ends the child even where this process hangs.

    Args:
        pid: the child.
        budget: the request that is about to be sent.
        seconds: processor time of all that is sent with it.
        granted: the limit that stands.

    Returns:
        The limit that stands now, in seconds of the child's whole life.
    """
    need = budget.cpu_at_start + seconds + 1.0
    if need <= granted:
        return granted
    limit = math.ceil(need + _GRANT_STEP_SECONDS)
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.prlimit(pid, resource.RLIMIT_CPU)
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.prlimit(pid, resource.RLIMIT_CPU, (limit, hard))
    return float(limit)
