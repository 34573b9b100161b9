"""What an environment is, and how it runs safely.

The names below are the stable face; they are loaded when they are first used, so that importing
this package costs nothing.

>>> import spade_runtime
>>> spade_runtime.__version__
'0.1.0'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spade_runtime.sandbox import EnvSession, SandboxPool
    from spade_runtime.spec import (
        EnvSpec,
        Finding,
        Limits,
        ToolSpec,
        ValidationReport,
    )
    from spade_runtime.validation import validate

__version__ = "0.1.0"

_HOMES = {
    "EnvSession": "spade_runtime.sandbox",
    "EnvSpec": "spade_runtime.spec",
    "Finding": "spade_runtime.spec",
    "Limits": "spade_runtime.spec",
    "SandboxPool": "spade_runtime.sandbox",
    "ToolSpec": "spade_runtime.spec",
    "ValidationReport": "spade_runtime.spec",
    "validate": "spade_runtime.validation",
}

__all__ = [
    "EnvSession",
    "EnvSpec",
    "Finding",
    "Limits",
    "SandboxPool",
    "ToolSpec",
    "ValidationReport",
    "validate",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its home (PEP 562)."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'spade_runtime' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names that `dir()` shows."""
    return sorted([*__all__, "__version__"])
