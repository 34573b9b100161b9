"""What the tests of the adapters share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from spade_envs import suite
from spade_envs.pool import Pool
from spade_envs.pool_export import export_pool
from spade_envs.pool_import import Importer
from spade_runtime.sandbox import SandboxPool


@pytest.fixture(scope="session")
def solution_of(sandbox: SandboxPool) -> Callable[[str, int], list[Any]]:
    """Gives the solution of one of the suite's environments at a seed."""

    def solve(name: str, seed: int) -> list[Any]:
        with sandbox.open(suite.paths()[name]) as session:
            session.reset([seed])
            found = session.solution()[0]
        assert found is not None
        return found

    return solve


@pytest.fixture(scope="session")
def exported(sandbox: SandboxPool, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Exports a small pool of the suite's environments: (format, name, hints by class)."""

    def export(form: str, name: str, hints: Mapping[str, str]) -> Path:
        folder = tmp_path_factory.mktemp("sources")
        for environment, hint in hints.items():
            path = suite.paths()[environment]
            (folder / path.name).write_bytes(path.read_bytes())
            if hint:
                (folder / f"{path.stem}.hint.txt").write_text(f"{hint}\n")
        pool = Pool(tmp_path_factory.mktemp("pool") / "p", create=True)
        assert {one.status for one in Importer(pool, sandbox).folder(folder)} == {"added"}
        target = tmp_path_factory.mktemp("out") / name
        export_pool(pool, pool.entries(), target, form)
        return target

    return export
