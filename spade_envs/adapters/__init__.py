"""Thin bridges to other libraries; each is imported only when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from spade_runtime.errors import UsageError


def need(module: str, package: str, purpose: str) -> Any:
    """Import a module of another library.

    Args:
        module: the module's name.
        package: what pip installs it by.
        purpose: what it is wanted for, as the subject of a sentence.

    Raises:
        UsageError: it is not installed, or lacks something itself; the message names both.

    >>> need("json", "nothing", "reading JSON").loads("[1]")
    [1]
    """
    try:
        return import_module(module)
    except ImportError as missing:
        raise lacking(missing, package, purpose) from missing


def lacking(missing: ImportError, package: str, purpose: str) -> UsageError:
    """What to say of an import that failed.

    >>> print(lacking(ImportError(name="gem"), "gem-llm", "A GEM environment"))
    A GEM environment needs the package gem-llm (there is no module gem): pip install gem-llm
    """
    name = missing.name or str(missing)
    return UsageError(
        f"{purpose} needs the package {package} (there is no module {name}): pip install {package}"
    )
