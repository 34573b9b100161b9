"""Runs code that nobody trusts: the pool of locked-down children and the sessions over them.

Loaded when first used, since the children import their own half of this package and none of the
parent's.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spade_runtime.sandbox.pool import SandboxPool
    from spade_runtime.sandbox.session import EnvSession

__all__ = ["EnvSession", "SandboxPool"]

_HOMES = {
    "EnvSession": "spade_runtime.sandbox.session",
    "SandboxPool": "spade_runtime.sandbox.pool",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its home (PEP 562)."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'spade_runtime.sandbox' has no attribute {name!r}")
