"""What the zygote imports before it locks itself in; what is not here can not be imported later."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Sequence
from importlib import import_module

from spade_runtime import curated
from spade_runtime.sandbox import holes

# Other names of the list are the contract's own stand-ins for libraries: no modules to import.
CONTRACT_MODULES: tuple[str, ...] = tuple(
    name
    for name in curated.MODULES
    if (root := name.partition(".")[0]) in sys.stdlib_module_names or root == "spade_runtime"
)
"""The list of contract.md section 2."""

# What the standard library imports only when it needs it: the files are out of reach by then.
_HIDDEN: tuple[str, ...] = (
    "encodings.ascii",
    "encodings.cp1252",
    "encodings.idna",
    "encodings.latin_1",
    "encodings.raw_unicode_escape",
    "encodings.unicode_escape",
    "encodings.utf_16_be",
    "encodings.utf_16_le",
    "encodings.utf_8",
    "encodings.utf_8_sig",
    "stringprep",
    "unicodedata",
    "_strptime",
    "linecache",
    "traceback",
    "tokenize",
)

_RUNTIME: tuple[str, ...] = (
    "msgspec",
    "spade_runtime.authoring",
    "spade_runtime.contract",
    "spade_runtime.entropy",
    "spade_runtime.policy",
    "spade_runtime.toolspec",
    "spade_runtime.views",
    "spade_runtime.sandbox.child",
    "spade_runtime.sandbox.lockdown",
)

# numpy 2 imports these when they are first touched.
_NUMPY: tuple[str, ...] = (
    "numpy",
    "numpy.fft",
    "numpy.lib",
    "numpy.linalg",
    "numpy.ma",
    "numpy.typing",
    "numpy.polynomial",
    "numpy.random",
    "networkx",
)

PLAIN: tuple[str, ...] = ()
NUMPY: tuple[str, ...] = _NUMPY
"""Preload sets; each has a zygote of its own, started when a source first needs it."""

# Doors to the system that the imports above opened in passing.
_SHUT: tuple[str, ...] = ("_socket", "ctypes", "_ctypes", "socket", "subprocess", "mmap")


def preload(extra: Sequence[str]) -> list[str]:
    """Import what every child has, and the modules of a set.

    Returns:
        The modules of the set that are not installed here.
    """
    for module in (*CONTRACT_MODULES, *_HIDDEN, *_RUNTIME):
        import_module(module)
    # Python 3.13 imports the hash that text seeds go through only with the first of them.
    random.Random("text")
    missing = []
    for module in extra:
        try:
            import_module(module)
        except ImportError:
            missing.append(module)
    return missing


def warm_up() -> None:
    """Play environments of our own, so that children begin with caches that are warm."""
    from spade_runtime.sandbox.rehearsal import rehearse

    rehearse()


def shut() -> None:
    """Take the system's own doors off the table, and every place to import from.

    The last that is thrown away before the fork, and so the moment to fill the gaps that it leaves.
    """
    from spade_runtime.sandbox.source import ROOMS

    for name in _SHUT:
        sys.modules.pop(name, None)
    # These packages load their names when they are first asked for; here there is nothing left to
    # load, so a name that is missing is an AttributeError, as anywhere else.
    for name in ("spade_runtime", "spade_runtime.sandbox"):
        vars(sys.modules[name]).pop("__getattr__", None)
    sys.path[:] = []
    sys.path_importer_cache.clear()
    gc.collect()
    ROOMS.filling = holes.fill()
