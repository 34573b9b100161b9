"""Gymnasium's side: registration, environments, vectors, pools and episodes.

Importing this package registers the environments that ship with it, by name and without reading
one of them; Gymnasium has no other way to learn of them.

>>> import gymnasium, spade_envs
>>> env = gymnasium.make("spade/RollingDie-v0")
>>> env.close()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spade_envs.registration import (
    register,
    register_pool,
    register_suite,
    registered,
    unregister,
)

if TYPE_CHECKING:
    from spade_envs.env import SpadeEnv
    from spade_envs.pool import Pool
    from spade_envs.spaces import UnicodeText
    from spade_envs.vector import SpadeVectorEnv
    from spade_envs.wrappers import HintWrapper, MessageWrapper, TranscriptWrapper

_HOMES = {
    "HintWrapper": "spade_envs.wrappers",
    "MessageWrapper": "spade_envs.wrappers",
    "Pool": "spade_envs.pool",
    "SpadeEnv": "spade_envs.env",
    "SpadeVectorEnv": "spade_envs.vector",
    "TranscriptWrapper": "spade_envs.wrappers",
    "UnicodeText": "spade_envs.spaces",
}

__all__ = [
    "HintWrapper",
    "MessageWrapper",
    "Pool",
    "SpadeEnv",
    "SpadeVectorEnv",
    "TranscriptWrapper",
    "UnicodeText",
    "register",
    "register_pool",
    "register_suite",
    "registered",
    "unregister",
]

register_suite()


def __getattr__(name: str) -> Any:
    """Load a public name from its home (PEP 562)."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'spade_envs' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names that `dir()` shows."""
    return sorted(__all__)
