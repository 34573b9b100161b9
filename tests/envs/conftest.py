"""What the tests of Gymnasium's side share."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

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


class ChatServer:
    """A small server that speaks the OpenAI chat protocol, with a reply made by a function.

    Attributes:
        url: its base address.
        asked: the bodies of the requests so far.
        answer: from a request's body to (status, body as text); may be replaced.
    """

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.models = ["stub-model"]
        self.answer: Callable[[dict[str, Any]], tuple[int, str]] = lambda _: (200, chat("1"))
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                rows = [{"id": name} for name in owner.models]
                self._send(200, json.dumps({"data": rows}))

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(length))
                owner.asked.append(body)
                owner.headers.append(dict(self.headers))
                self._send(*owner.answer(body))

            def _send(self, status: int, text: str) -> None:
                data = text.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def chat(text: str | None, calls: list[dict[str, Any]] | None = None) -> str:
    """The body of a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = calls
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})


@pytest.fixture
def chat_body() -> Callable[..., str]:
    """The maker of a chat completion's body."""
    return chat


@pytest.fixture
def chat_server() -> Iterator[ChatServer]:
    """A local server, closed at the end."""
    server = ChatServer()
    yield server
    server.close()
