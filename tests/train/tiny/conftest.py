"""The sandbox and the validator, started once for this folder."""

from collections.abc import Iterator

import pytest

from spade_runtime.errors import IsolationUnavailable
from spade_runtime.sandbox import SandboxPool
from spade_runtime.validation.validator import Validator


@pytest.fixture(scope="session")
def pool() -> Iterator[SandboxPool]:
    try:
        made = SandboxPool()
    except IsolationUnavailable as missing:
        pytest.skip(f"no sandbox here: {missing}")
    with made:
        yield made


@pytest.fixture(scope="session")
def validator() -> Iterator[Validator]:
    try:
        made = Validator()
    except IsolationUnavailable as missing:
        pytest.skip(f"no sandbox here: {missing}")
    with made:
        yield made
