"""The model hub: one look whether it is there, where its libraries would ask for half a minute."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SECONDS = 5.0


def unreachable() -> str:
    """Return why the hub can't be reached, or an empty text where it can.

    A proxy of the environment is used, and any answer at all counts.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    request = urllib.request.Request(constants.ENDPOINT, method="HEAD")
    try:
        urllib.request.urlopen(request, timeout=SECONDS).close()
    except urllib.error.HTTPError:
        return ""
    except (urllib.error.URLError, OSError, ValueError) as error:
        return f"{constants.ENDPOINT}: {getattr(error, 'reason', error)}"
    return ""


@contextmanager
def cache_alone(*, when: bool) -> Iterator[None]:
    """Let the hub's libraries look into their cache alone while the block runs.

    They read the switch of their environment only when they are imported, so it is turned in them,
    and turned back.
    """
    if not when:
        yield
        return
    from huggingface_hub import constants

    # `datasets` keeps a copy.
    homes: list[Any] = [constants, *filter(None, [sys.modules.get("datasets.config")])]
    before = [home.HF_HUB_OFFLINE for home in homes]
    try:
        for home in homes:
            home.HF_HUB_OFFLINE = True
        yield
    finally:
        for home, value in zip(homes, before, strict=True):
            home.HF_HUB_OFFLINE = value
