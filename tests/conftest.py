"""What every test may use."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is slow, which says nothing about the code.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

if TYPE_CHECKING:
    from spade_runtime.sandbox import SandboxPool
    from spade_runtime.validation import Validator


_STATE = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep this machine's own records out of the tests, and the tests out of them."""
    config.stash[_STATE] = tempfile.TemporaryDirectory(prefix="spade-tests-")
    os.environ["XDG_STATE_HOME"] = config.stash[_STATE].name


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove them."""
    config.stash[_STATE].cleanup()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).parents[1]


@pytest.fixture(scope="session")
def golden() -> dict[str, Any]:
    """Golden values of the pure functions: inputs and right outputs by function."""
    text = (Path(__file__).parent / "golden" / "golden.json").read_text(encoding="utf-8")
    values: dict[str, Any] = json.loads(text)
    return values


@pytest.fixture(scope="session")
def isolation() -> None:
    """Skips where the sandbox can't isolate."""
    from spade_runtime.errors import IsolationUnavailable
    from spade_runtime.sandbox import SandboxPool

    try:
        SandboxPool().close()
    except IsolationUnavailable as missing:
        pytest.skip(f"no isolation here: {missing}")


@pytest.fixture(scope="session")
def sandbox(isolation: None) -> Iterator[SandboxPool]:
    """A pool as it is used, one for all tests."""
    from spade_runtime.sandbox import SandboxPool

    with SandboxPool() as pool:
        yield pool


@pytest.fixture(scope="session")
def validator(sandbox: SandboxPool) -> Iterator[Validator]:
    """A validator at the default isolation, one for all tests."""
    from spade_runtime.validation import Validator

    with Validator(pool=sandbox) as made:
        yield made


class ChatServer:
    """A small server that speaks the OpenAI chat protocol, with a reply made by a function.

    Attributes:
        url: its base address.
        asked: the bodies of the requests so far.
        headers, paths: theirs.
        models: the names that it lists, or the whole answer where those are asked for.
        answer: from a request's body to (status, body as text); may be replaced.
        script: (status, headers, body) of the next replies, before `answer` is asked; status 0
            drops the connection.
    """

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.models: list[str] | str = ["stub-model"]
        self.answer: Callable[[dict[str, Any]], tuple[int, str]] = lambda _: (200, chat("1"))
        self.script: list[tuple[int, dict[str, str], str]] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.paths.append(self.path)
                answer = owner.models
                if not isinstance(answer, str):
                    answer = json.dumps({"data": [{"id": name} for name in answer]})
                self._send(200, {}, answer)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                owner.paths.append(self.path)
                owner.headers.append(dict(self.headers))
                owner.asked.append(body)
                if owner.script:
                    self._send(*owner.script.pop(0))
                else:
                    status, text = owner.answer(body)
                    self._send(status, {}, text)

            def _send(self, status: int, headers: dict[str, str], text: str) -> None:
                if status == 0:
                    self.close_connection = True
                    return
                data = text.encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def chat(text: str | None, calls: list[dict[str, Any]] | None = None, finish: str = "stop") -> str:
    """The body of a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = calls
    return json.dumps({"choices": [{"message": message, "finish_reason": finish}]})


@pytest.fixture(scope="session")
def chat_body() -> Callable[..., str]:
    """The maker of a chat completion's body."""
    return chat


@pytest.fixture(scope="session")
def start_chat_server() -> Iterator[Callable[[], ChatServer]]:
    """Starts a local server that lives as long as the tests."""
    started: list[ChatServer] = []

    def start() -> ChatServer:
        started.append(ChatServer())
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture
def chat_server() -> Iterator[ChatServer]:
    """A local server, closed at the test's end."""
    server = ChatServer()
    yield server
    server.close()
