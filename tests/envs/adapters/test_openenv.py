"""OpenEnv: the server over a real socket, with OpenEnv's own client."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spade_envs.pool import Pool

needs_openenv = pytest.mark.skipif(
    importlib.util.find_spec("openenv") is None, reason="openenv-core is not installed"
)


@pytest.fixture(scope="module")
def package(exported: Callable[..., Path]) -> Path:
    """A small pool, exported as an OpenEnv package."""
    hints = dict.fromkeys(("StampDrawerEnv", "MapRoomEnv"), "Take your time.")
    return exported("openenv", "served", hints)


def test_the_package_holds_a_locked_pool_and_a_manifest(package: Path) -> None:
    assert Pool(package / "pool").verify() == []
    assert len(Pool(package / "pool")) == 2
    assert "app: server.app:app" in (package / "openenv.yaml").read_text()
    assert "spade/MapRoom-v0" in (package / "README.md").read_text()
    compile((package / "server/app.py").read_text(), "app.py", "exec")


@pytest.fixture(scope="module")
def server(package: Path) -> Iterator[str]:
    """The exported package's own server in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = f"from server.app import main; main('127.0.0.1', {port})"
    worker = subprocess.Popen([sys.executable, "-W", "ignore", "-c", program], cwd=package)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"{url}/health", timeout=2):
                    break
            except OSError:
                assert worker.poll() is None, "the server ended"
                time.sleep(0.1)
        yield url
    finally:
        worker.terminate()
        worker.wait(timeout=30)


def client(url: str) -> Any:
    from openenv.core.generic_client import GenericEnvClient

    return GenericEnvClient(base_url=url).sync()


@needs_openenv
@pytest.mark.filterwarnings("default")
def test_a_client_plays_a_game(server: str) -> None:
    with client(server) as env:
        start = env.reset(environment="spade/StampDrawer-v0", seed=7, hinted=True)
        assert start.observation["text"].startswith("A drawer holds plenty of stamps")
        assert start.observation["text"].endswith("\n\nHint: Take your time.")
        again = env.reset(environment="spade/StampDrawer-v0", seed=7)
        assert start.observation["text"].startswith(again.observation["text"])
        result = env.step({"message": "I guess \\boxed{0}"})
        assert result.done and result.reward == 0.0
        assert result.observation["info"]["spade"]["action"] == "0"
        assert env.state()["environment"] == "spade/StampDrawer-v0"


@needs_openenv
@pytest.mark.filterwarnings("default")
def test_two_clients_play_side_by_side(server: str) -> None:
    call = {"name": "answer", "arguments": {"traveller": "pilot", "value": 1}}
    with client(server) as first, client(server) as second:
        tools = first.reset(environment="spade/MapRoom-v0", seed=1).observation["tools"]
        assert {row["function"]["name"] for row in tools} >= {"road_km", "answer"}
        second.reset(environment="spade/StampDrawer-v0", seed=2)
        assert second.step({"message": "3"}).done
        result = first.step({"tool_calls": [call]})
        assert result.observation["text"] == "You tell the pilot: 1." and not result.done


@needs_openenv
@pytest.mark.filterwarnings("default")
def test_an_unknown_environment_is_answered(server: str) -> None:
    with client(server) as env, pytest.raises(Exception, match="did you mean 'spade/MapRoom-v0'"):
        env.reset(environment="spade/MapRom-v0")
