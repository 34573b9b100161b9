"""How a zygote is executed: a bare interpreter, an explicit path, an environment of our own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def command(control_fd: int) -> list[str]:
    """The command line of a zygote.

    Args:
        control_fd: descriptor of its end of the control socket, which it inherits.
    """
    paths = _import_paths()
    start = (
        f"import sys; sys.path[:0] = {paths!r}; "
        f"from spade_runtime.sandbox.zygote import main; main({control_fd})"
    )
    # No -I or -E: they would make Python ignore PYTHONHASHSEED. The environment is clean anyway.
    return [sys.executable, "-S", "-s", "-P", "-c", start]


def _import_paths() -> list[str]:
    """Where the zygote's few packages live; nothing else of `sys.path` goes along."""
    paths: list[str] = []
    for name in ("spade_runtime", "msgspec", "RestrictedPython", "numpy", "networkx"):
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            continue
        home = str(Path(found.origin).resolve().parent.parent)
        if home not in paths:
            paths.append(home)
    return paths


def environment(hash_seed: int) -> dict[str, str]:
    """All that the zygote gets to see of the trainer's environment: nothing."""
    return {
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
        # In the form that needs no file: libraries' own reads of the clock are in UTC everywhere.
        "TZ": "UTC0",
        # More threads than one would make the fork unsafe, and each takes address space.
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "1",
    }
