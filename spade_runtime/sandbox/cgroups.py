"""A control group around a zygote and all its children, for the memory of all together.

Optional: it needs a writable memory controller, of either version, which usually means root. The
address-space limit of each child holds without it.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_REMOVE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Kind:
    """Where a version of the controller keeps its files."""

    version: int
    place: Path
    limit: str
    swap: str


def _own(controller: str) -> str:
    """This process's group: of a version-1 controller, or of version 2 for an empty name."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return "/"
    for line in lines:
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return path
    return "/"


def find() -> _Kind | None:
    """The memory controller that can be used here, or None.

    A group of version 2 that holds processes may have no children with limits, so only the root of
    a delegated or a system's tree counts.
    """
    first = _ROOT / "memory"
    if (first / "memory.limit_in_bytes").exists():
        place = first / _own("memory").lstrip("/")
        kind = _Kind(1, place, "memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
        return kind if _writable(place) else None
    controllers = _ROOT / "cgroup.subtree_control"
    with contextlib.suppress(OSError):
        if "memory" in controllers.read_text().split() and _writable(_ROOT):
            return _Kind(2, _ROOT, "memory.max", "memory.swap.max")
    return None


def _writable(place: Path) -> bool:
    probe = place / f"spade-probe-{secrets.token_hex(4)}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError:
        return False
    return True


class MemoryGroup:
    """One control group with a limit; `close` removes it.

    Args:
        kind: what `find` gave.
        limit_mib: memory of all processes in it together, in MiB.
    """

    def __init__(self, kind: _Kind, limit_mib: int) -> None:
        self._place = kind.place / f"spade-{secrets.token_hex(8)}"
        self._place.mkdir()
        try:
            limit = str(limit_mib << 20)
            (self._place / kind.limit).write_text(limit)
            with contextlib.suppress(OSError):  # swap is not accounted for everywhere
                (self._place / kind.swap).write_text("0" if kind.version == 2 else limit)
        except BaseException:
            self._place.rmdir()
            raise

    def add(self, pid: int) -> None:
        """Move a process in; what it forks from now on begins in here."""
        (self._place / "cgroup.procs").write_text(str(pid))

    def close(self) -> None:
        """Remove the group once its processes are gone."""
        end = time.monotonic() + _REMOVE_SECONDS
        while True:
            try:
                self._place.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)
