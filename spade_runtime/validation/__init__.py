"""Says whether an environment is sound, and why not: gates, findings, reports.

>>> from spade_runtime.validation import validate
>>> validate("crate_shuffle_env.py").verdict  # doctest: +SKIP
'accepted'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spade_runtime.validation.validator import Validator, validate

__all__ = ["Validator", "validate"]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used (PEP 562)."""
    if name in __all__:
        return getattr(import_module("spade_runtime.validation.validator"), name)
    raise AttributeError(f"module 'spade_runtime.validation' has no attribute {name!r}")
