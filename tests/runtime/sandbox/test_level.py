"""What may be asked of the isolation: a level that is none is refused, whoever asks for it."""

from __future__ import annotations

from typing import Any

import pytest

from spade_runtime.errors import IsolationUnavailable, UsageError
from spade_runtime.sandbox import SandboxPool
from spade_runtime.sandbox.facilities import Facilities, require

NO_LEVEL = ["STRICT", "foo", "", "strict ", None, 5, True, ["strict"]]


@pytest.mark.parametrize("level", NO_LEVEL)
def test_a_pool_refuses_what_is_no_level(level: Any) -> None:
    with pytest.raises(UsageError, match="'strict', 'best_effort' or 'none', not "):
        SandboxPool(level=level)


def test_a_level_that_is_not_known_demands_what_strict_does() -> None:
    bare = Facilities()
    for level in ("strict", "STRICT"):
        with pytest.raises(IsolationUnavailable, match="can't isolate"):
            require(level, bare)
    require("best_effort", bare)
    require("none", bare)
