"""The judge fails closed: only an answer that can be read in full lets a criterion pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spade_runtime.chat_client import Patience
from spade_runtime.errors import UsageError
from spade_runtime.validation.judge import JudgeFailed, JudgeSettings, read_answer
from spade_runtime.validation.validator import Validator

GOOD = {"turns": [{"turn": n, "reachable": True, "reason": "put"} for n in (1, 2, 3)]}


def _codes(server: Any, source: str, profile: str = "standard") -> dict[str, str]:
    settings = JudgeSettings(server.url, "judge", Patience(timeout=10, retries=1, pause=0.01))
    with Validator(judge=settings.judge()) as validator:
        report = validator.validate(source, profile=profile)  # type: ignore[arg-type]
    return {row.code: row.severity for row in report.findings}


def test_a_reachable_environment_passes(chat_server: Any, chat_body: Any, shelf_tools: str) -> None:
    chat_server.answer = lambda _: (200, chat_body("```json\n" + json.dumps(GOOD) + "\n```"))
    assert _codes(chat_server, shelf_tools) == {}
    told = chat_server.asked[0]["messages"][0]["content"]
    assert "Put box" in told and "def put" in told


def test_an_unreachable_criterion_is_an_error(
    chat_server: Any, chat_body: Any, shelf_tools: str
) -> None:
    turns = [{**row, "reachable": row["turn"] != 2} for row in GOOD["turns"]]
    chat_server.answer = lambda _: (200, chat_body(json.dumps({"turns": turns})))
    assert _codes(chat_server, shelf_tools) == {"SPD603": "error"}


def test_no_answer_is_no_pass(chat_server: Any, chat_body: Any, shelf_tools: str) -> None:
    chat_server.answer = lambda _: (200, chat_body("I think it is fine."))
    assert _codes(chat_server, shelf_tools) == {"SPD604": "warning"}
    chat_server.answer = lambda _: (500, "broken")
    assert _codes(chat_server, shelf_tools, "strict") == {"SPD604": "error"}


def test_games_are_not_judged(chat_server: Any, sum_game: str) -> None:
    assert _codes(chat_server, sum_game) == {}
    assert chat_server.asked == []


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
