"""Progress bars of other libraries, kept off the terminal that a command writes to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any


@contextmanager
def without_bars() -> Iterator[None]:
    """Let `transformers` and `datasets` draw no bars while the block runs.

    They draw for what takes a moment: weights that are read, rows that are saved. What the hub's
    own library draws while it downloads stays, and so does whatever is not imported yet.
    """
    with ExitStack() as undone:
        logging: Any = sys.modules.get("transformers.utils.logging")
        if hasattr(logging, "set_tqdm_hook"):
            undone.callback(logging.set_tqdm_hook, logging.set_tqdm_hook(_hidden))
        datasets: Any = sys.modules.get("datasets")
        if datasets is not None and not datasets.are_progress_bars_disabled():
            datasets.disable_progress_bars()
            undone.callback(datasets.enable_progress_bars)
        yield


def _hidden(bar: Callable[..., Any], positional: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    return bar(*positional, **{**named, "disable": True})
