"""What this machine offers for isolation, and which level that makes.

Standard library only: the zygote fills the record in by trying, the parent judges it.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

from spade_runtime.errors import IsolationUnavailable, UsageError

LEVELS: tuple[str, ...] = ("strict", "best_effort", "none")
"""The levels of isolation that can be asked for, strongest first."""
LAYERS: tuple[str, ...] = ("rlimits", "uid", "namespaces", "landlock", "seccomp")
"""The layers that can be switched on one by one; the pool uses all that the machine has."""

LANDLOCK_FILES_ABI = 1
LANDLOCK_SIGNALS_ABI = 6
MINIMUM_KERNEL = "5.13"


@dataclass(slots=True)
class Facilities:
    """What was tried and worked, as the zygote reports it.

    Attributes:
        seccomp: a child loaded the allow-list.
        landlock_abi: version of Landlock (1: files; 4: TCP; 6: signals), 0 for none.
        empty_root: children see an empty read-only root and no `/proc`.
        namespaces: names of the namespaces that were unshared.
        unique_uid: every child gets a uid of its own (the pool runs as root).
        user_namespace: children live in a user namespace without any capability.
        undumpable: processes of the same uid can neither trace nor read a child.
        rlimits: address space, processes, files and cores are limited.
        problems: what was tried and failed, by facility, with the kernel's words.
    """

    seccomp: bool = False
    landlock_abi: int = 0
    empty_root: bool = False
    namespaces: list[str] = field(default_factory=list)
    unique_uid: bool = False
    user_namespace: bool = False
    undumpable: bool = False
    rlimits: bool = False
    problems: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain data."""
        return asdict(self)

    def parts(self) -> list[str]:
        """Names of what is in force, strongest first."""
        named = [
            ("seccomp", self.seccomp),
            (f"landlock ABI {self.landlock_abi}", self.landlock_abi > 0),
            ("empty root", self.empty_root),
            ("unique uid", self.unique_uid),
            ("user namespace", self.user_namespace),
            ("namespaces " + "+".join(self.namespaces), bool(self.namespaces)),
            ("not dumpable", self.undumpable),
            ("rlimits", self.rlimits),
        ]
        return [name for name, there in named if there]

    def missing_for_strict(self) -> list[str]:
        """What stands between this machine and the level `strict`, each with its mend."""
        missing = []
        if not self.seccomp:
            missing.append(
                "seccomp: install libseccomp2 (the package manager's libseccomp), and allow "
                "seccomp filters in the container's own profile" + self._because("seccomp")
            )
        if self.landlock_abi < LANDLOCK_FILES_ABI and not self.empty_root:
            missing.append(
                f"files: use a kernel of at least {MINIMUM_KERNEL} with Landlock in its lsm= list, "
                "or run where mount namespaces are allowed (as root, or with unprivileged user "
                "namespaces)" + self._because("landlock", "namespaces", "empty_root")
            )
        own_signals = self.landlock_abi >= LANDLOCK_SIGNALS_ABI and self.undumpable
        if not (self.unique_uid or self.user_namespace or own_signals):
            missing.append(
                "processes: run as root (each child then gets its own uid), or allow unprivileged "
                "user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
                "kernel.apparmor_restrict_unprivileged_userns=0), or use a kernel of at least "
                f"6.12 (Landlock ABI {LANDLOCK_SIGNALS_ABI})" + self._because("namespaces", "uid")
            )
        return missing

    def level(self) -> str:
        """The strongest level that these facilities reach."""
        if not self.missing_for_strict():
            return "strict"
        return "best_effort" if self.parts() else "none"

    def _because(self, *names: str) -> str:
        seen = [self.problems[name] for name in names if name in self.problems]
        return f" (the kernel said: {'; '.join(seen)})" if seen else ""


def machine() -> dict[str, Any]:
    """The machine, in the words of `spade doctor`."""
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "user": "root" if os.geteuid() == 0 else f"uid {os.geteuid()}",
        "cpus": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
    }


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if supported() else os.cpu_count() or 1


def supported() -> bool:
    """Whether this system has the means at all: Linux, and nothing else."""
    return sys.platform == "linux"


# How each of those who start a sandbox names the level.
BEST_EFFORT = (
    "`--isolation best_effort` (SandboxPool(level='best_effort') in Python, "
    "isolation=best_effort in a training configuration)"
)


def check_level(level: object) -> None:
    """Refuse what is no level: a misspelt `strict` must not run with less than was meant.

    Raises:
        UsageError: it is none; the message lists those that are.
    """
    if not (isinstance(level, str) and level in LEVELS):
        raise UsageError(
            f"a level of isolation is 'strict', 'best_effort' or 'none', not {level!r:.60}"
        )


def require(level: str, facilities: Facilities) -> None:
    """Hold what was reached against a level.

    Raises:
        IsolationUnavailable: `strict` was asked for and something is missing; the message says
            what, and how to get it.
    """
    missing = facilities.missing_for_strict()
    if missing and level not in ("best_effort", "none"):
        raise IsolationUnavailable(
            "the sandbox can't isolate at level 'strict' here. Missing:\n- "
            + "\n- ".join(missing)
            + f"\n`spade doctor` shows more; {BEST_EFFORT} takes what there is."
        )
