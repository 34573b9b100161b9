"""The judge fails closed: only an answer that can be read in full lets a criterion pass."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from spade_runtime.errors import UsageError
from spade_runtime.validation.judge import JudgeFailed, JudgeSettings, read_answer
from spade_runtime.validation.validator import Validator

GOOD = {"turns": [{"turn": n, "reachable": True, "reason": "put"} for n in (1, 2, 3)]}


class _Server(HTTPServer):
    answer = ""
    status = 200
    asked: list[str]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(json.loads(body)["messages"][0]["content"])
        self.send_response(self.server.status)
        self.end_headers()
        reply = {"choices": [{"message": {"content": self.server.answer}}]}
        self.wfile.write(json.dumps(reply).encode())

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[_Server]:
    made = _Server(("127.0.0.1", 0), _Handler)
    made.asked = []
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def _codes(server: _Server, source: str, profile: str = "standard") -> dict[str, str]:
    settings = JudgeSettings(f"http://127.0.0.1:{server.server_port}/v1", "judge")
    with Validator(judge=settings.judge()) as validator:
        report = validator.validate(source, profile=profile)  # type: ignore[arg-type]
    return {row.code: row.severity for row in report.findings}


def test_a_reachable_environment_passes(server: _Server, shelf_tools: str) -> None:
    server.answer = "```json\n" + json.dumps(GOOD) + "\n```"
    assert _codes(server, shelf_tools) == {}
    assert "Put box" in server.asked[0]
    assert "def put" in server.asked[0]


def test_an_unreachable_criterion_is_an_error(server: _Server, shelf_tools: str) -> None:
    turns = [{**row, "reachable": row["turn"] != 2} for row in GOOD["turns"]]
    server.answer = json.dumps({"turns": turns})
    assert _codes(server, shelf_tools) == {"SPD603": "error"}


def test_no_answer_is_no_pass(server: _Server, shelf_tools: str) -> None:
    server.answer = "I think it is fine."
    assert _codes(server, shelf_tools) == {"SPD604": "warning"}
    server.status = 500
    assert _codes(server, shelf_tools, "strict") == {"SPD604": "error"}


def test_games_are_not_judged(server: _Server, sum_game: str) -> None:
    assert _codes(server, sum_game) == {}
    assert server.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"turns": 3}',
        '{"turns": [{"turn": 1, "reachable": true}]}',
        '{"turns": [{"turn": 1, "reachable": "yes"}, {"turn": 2, "reachable": true}]}',
        "[" * 100_000,
    ],
)
def test_answers_that_leave_something_out_fail(answer: str) -> None:
    with pytest.raises(JudgeFailed):
        read_answer(answer, 2)


def test_addresses_are_checked() -> None:
    with pytest.raises(UsageError, match="must begin with http"):
        JudgeSettings("file:///etc/passwd", "judge").judge()
