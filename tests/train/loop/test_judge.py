"""A judge of tool criteria in training: a server that answers, refuses, or talks nonsense."""

import json

import pytest

pytest.importorskip("torch")

from spade_runtime.errors import UsageError  # noqa: E402
from spade_train.assemble import assembled  # noqa: E402
from spade_train.loop import train  # noqa: E402
from spade_train.presets import resolve  # noqa: E402
from spade_train.run_folder import RunFolder  # noqa: E402

pytestmark = pytest.mark.usefixtures("isolation")


def verdicts(refused_text):
    """Says of every criterion that tools reach it, but for one environment."""

    def say(body):
        reachable = refused_text not in body["messages"][0]["content"]
        turns = [{"turn": n, "reachable": reachable, "reason": "look"} for n in (1, 2, 3)]
        return json.dumps({"turns": turns})

    return say


def run_with(server, words, forced, lines, tmp_path, **changes):
    asked = {
        "setting": "tools",
        "steps": 1,
        "environments": 4,
        "judge_url": server.url,
        "judge_model": "judge-1",
        **changes,
    }
    config = resolve("tiny", overrides=words(tmp_path / "run", **asked))
    folder = RunFolder.create(tmp_path / "run", config)
    with folder.locked(), assembled(config, folder, policy=forced()) as run:
        assert train(run)
        paid = list(run.state.acceptance)
    assert paid == []
    return lines(folder.designs), lines(folder.metrics), folder


def codes(design):
    return {f["code"] for f in design["findings"] if f["severity"] == "error"}


def test_a_judge_that_answers_decides_what_is_played(
    chat_server, chat_body, words, forced, lines, tmp_path, monkeypatch
):
    monkeypatch.setenv("SPADE_JUDGE_KEY", "sk-abcdefghijklmnopqrst")
    say = verdicts("Look round house 0")
    chat_server.answer = lambda body: (200, chat_body(say(body)))
    designs, metrics, folder = run_with(chat_server, words, forced, lines, tmp_path)
    sound = [d for d in designs if d["source"] and "class Desk" in d["source"]]
    assert {d["verdict"] for d in sound} == {"accepted", "rejected"}
    for design in sound:
        bad = "Look round house 0" in design["source"]
        assert codes(design) == ({"SPD603"} if bad else set())
    assert {body["model"] for body in chat_server.asked} == {"judge-1"}
    assert chat_server.headers[0]["Authorization"] == "Bearer sk-abcdefghijklmnopqrst"
    assert metrics[0]["designer/judge_silent"] == 0
    for path in folder.path.rglob("*"):
        if path.is_file():
            assert b"sk-abcdefghijklmnopqrst" not in path.read_bytes()


@pytest.mark.parametrize(
    ("status", "text"),
    [(401, "no such key"), (200, "I think it is fine."), (200, ""), (200, '{"turns": []}')],
)
def test_a_judge_that_gives_no_verdict_lets_nothing_through(
    chat_server, chat_body, words, forced, lines, tmp_path, status, text
):
    chat_server.answer = lambda _: (status, chat_body(text) if status == 200 else text)
    designs, metrics, folder = run_with(
        chat_server, words, forced, lines, tmp_path, designer_tries=2
    )
    assert {d["verdict"] for d in designs} == {"rejected"}
    unjudged = [d for d in designs if codes(d) == {"SPD604"}]
    assert unjudged
    assert not list((folder.path / "pool").glob("*/*/env.py"))
    assert metrics[0]["designer/judge_silent"] == len(unjudged)
    assert metrics[0]["agent/groups"] == 0
    # That the judge was silent is not the designer's fault: only its own broken tries are paid.
    broken = {d["slot"] for d in designs if codes(d) != {"SPD604"}}
    assert sum(line.get("designer/samples") or 0 for line in metrics) == len(broken)


def test_games_are_not_judged(chat_server, words, forced, lines, tmp_path):
    designs, *_ = run_with(chat_server, words, forced, lines, tmp_path, setting="games")
    assert any(d["verdict"] == "accepted" for d in designs)
    assert chat_server.asked == []


def test_an_address_that_is_none_is_refused_before_anything_is_played(words, tmp_path):
    overrides = words(tmp_path / "run", judge_url="file:///etc/x", judge_model="m")
    with pytest.raises(UsageError, match="http"):
        resolve("tiny", overrides=overrides)
