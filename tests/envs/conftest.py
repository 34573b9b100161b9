"""What the tests of Gymnasium's side share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spade_runtime.cli import main


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep this machine's own records out of the tests, and the tests out of them."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture
def spade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run `spade` in an empty directory: gives exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> tuple[int, str, str]:
        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:  # argparse leaves so
            code = int(stop.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run
