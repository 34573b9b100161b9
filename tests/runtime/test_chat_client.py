"""The one client: what is tried again, what is not, and what is said when it goes wrong."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from spade_runtime import chat_wire
from spade_runtime.chat_client import ChatClient, Completion, Patience, key_from
from spade_runtime.errors import (
    HostError,
    ServerError,
    ServerGarbled,
    ServerRefused,
    ServerUnavailable,
    UsageError,
)

BODY = {"model": "m", "messages": [{"role": "user", "content": "Where to?"}]}
QUICK = Patience(timeout=10, retries=2, pause=0.01)
CALL = {"id": "c1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}


def client(server: Any, **changes: Any) -> ChatClient:
    return ChatClient(server.url, **{"patience": QUICK, **changes})


def test_a_message_comes_with_its_calls_and_how_it_ended(chat_server: Any, chat_body: Any) -> None:
    asking = client(chat_server)
    assert asking.complete(BODY) == Completion("1")
    chat_server.script.append((200, {}, chat_body(None, [CALL], finish="length")))
    assert asking.complete(BODY) == Completion("", [CALL], "length")
    assert chat_server.asked == [BODY, BODY]
    assert chat_server.paths == ["/v1/chat/completions"] * 2
    assert "Authorization" not in chat_server.headers[0]


def test_the_full_address_and_the_base_are_the_same(chat_server: Any) -> None:
    for url in (chat_server.url + "/", chat_server.url + "/chat/completions/"):
        asking = ChatClient(url, patience=QUICK)
        assert asking.complete(BODY).text == "1"
        assert asking.models() == ["stub-model"]


@pytest.mark.parametrize(
    "trouble",
    [
        (429, {"Retry-After": "0.01"}, "slow down"),
        (429, {"Retry-After": "soon"}, "slow down"),
        (429, {"Retry-After": "Mon, 01 Jan 99999999999 00:00:00 GMT"}, "slow down"),
        (503, {}, ""),
        (0, {}, ""),
        (200, {}, "<html>"),
        (200, {}, "[" * 100_000),
        (200, {"Content-Length": "4000"}, '{"choices"'),
    ],
)
def test_passing_troubles_are_tried_again(chat_server: Any, trouble: Any) -> None:
    chat_server.script += [trouble, trouble]
    assert client(chat_server, patience=Patience(1, 2, 0.01)).complete(BODY).text == "1"
    assert len(chat_server.asked) == 3


def test_troubles_that_stay_are_named_with_the_tries(chat_server: Any) -> None:
    chat_server.answer = lambda _: (503, "come\x1b[31m back")
    with pytest.raises(ServerUnavailable, match=r"in 3 tries: HTTP 503: come\\x1b\[31m back"):
        client(chat_server).complete(BODY)
    assert issubclass(ServerUnavailable, HostError) and ServerUnavailable.exit_code == 1


class Clock:
    """A time that only sleeping passes."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


def patient(server: Any, clock: Clock) -> ChatClient:
    patience = Patience(timeout=10, retries=4, pause=1, longest_pause=6)
    return ChatClient(server.url, patience=patience, clock=clock, sleep=clock.sleep)


def test_pauses_double_up_to_the_longest(chat_server: Any) -> None:
    clock = Clock()
    chat_server.script += [(503, {}, "")] * 4
    patient(chat_server, clock).complete(BODY)
    assert clock.time == 1 + 2 + 4 + 6


@pytest.mark.parametrize(
    ("wait", "waited"),
    [
        ("3.5", 3.5),
        ("3600", 6),
        (format_datetime(datetime.now(UTC) + timedelta(hours=1)), 6),
        (format_datetime(datetime.now(UTC) - timedelta(hours=1)), 0),
    ],
)
def test_a_server_that_names_a_wait_is_given_it_up_to_the_longest_pause(
    chat_server: Any, wait: str, waited: float
) -> None:
    clock = Clock()
    chat_server.script.append((429, {"Retry-After": wait}, ""))
    patient(chat_server, clock).complete(BODY)
    assert clock.time == waited


def test_a_rate_limit_holds_the_client_s_other_requests_back(chat_server: Any) -> None:
    clock = Clock()
    impatient = Patience(timeout=10, retries=0)
    asking = ChatClient(chat_server.url, patience=impatient, clock=clock, sleep=clock.sleep)
    chat_server.script.append((429, {"Retry-After": "3"}, ""))
    with pytest.raises(ServerUnavailable):
        asking.complete(BODY)
    assert clock.time == 0
    asking.complete(BODY)
    assert clock.time == 3


def test_a_refusal_is_not_tried_again_and_does_not_show_the_key(chat_server: Any) -> None:
    chat_server.answer = lambda _: (401, "the key secret-word is not known")
    with pytest.raises(ServerRefused, match=r"HTTP 401: the key \*\*\* is not known"):
        client(chat_server, key="secret-word").complete(BODY)
    assert chat_server.headers[0]["Authorization"] == "Bearer secret-word"
    assert len(chat_server.asked) == 1
    assert issubclass(ServerRefused, UsageError) and ServerRefused.exit_code == 2


@pytest.mark.parametrize(("status", "text"), [(200, '{"choices": "secret-word"}'), (503, "{}")])
def test_no_other_message_shows_the_key(chat_server: Any, status: int, text: str) -> None:
    chat_server.answer = lambda _: (status, text.replace("{}", "secret-word"))
    with pytest.raises(ServerError) as caught:
        client(chat_server, key="secret-word").complete(BODY)
    assert "***" in str(caught.value) and "secret-word" not in str(caught.value)


def test_a_redirect_is_not_followed_with_the_key(chat_server: Any) -> None:
    chat_server.script.append((302, {"Location": "http://elsewhere.invalid/"}, ""))
    with pytest.raises(ServerRefused, match="it moved to http://elsewhere.invalid/; name that"):
        client(chat_server, key="secret-word").complete(BODY)


def test_an_address_without_its_version_is_recognised(chat_server: Any) -> None:
    chat_server.answer = lambda _: (404, "Not Found")
    bare = ChatClient(chat_server.url.removesuffix("/v1"), patience=QUICK)
    with pytest.raises(ServerRefused, match=r"Not Found \(addresses .* commonly end in /v1\)"):
        bare.complete(BODY)


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        "[]",
        "null",
        '{"choices": []}',
        '{"choices": [{"message": null}]}',
        '{"choices": [{"message": {"content": 3}}]}',
        '{"choices": [{"message": {"tool_calls": 3}}]}',
        '{"choices": [{"message": {"tool_calls": [{"function": {}}]}}]}',
        '{"choices": [{"message": {"tool_calls": [{"function": {"name": 3}}]}}]}',
    ],
)
def test_an_answer_that_is_no_completion_is_one_clear_error(chat_server: Any, body: str) -> None:
    chat_server.answer = lambda _: (200, body)
    with pytest.raises(ServerGarbled, match=r"http://127.0.0.1.* answered"):
        client(chat_server).complete(BODY)
    assert len(chat_server.asked) == 1


def test_an_answer_without_end_is_cut_and_named(chat_server: Any) -> None:
    chat_server.answer = lambda _: (200, " " * (chat_wire.ANSWER_BYTES + 1))
    with pytest.raises(ServerGarbled, match="more than 16,777,216 bytes"):
        client(chat_server).complete(BODY)


def test_lone_surrogates_of_an_answer_are_replaced(chat_server: Any) -> None:
    call = '{"function": {"name": "go", "arguments": "\\udc80"}}'
    chat_server.answer = lambda _: (
        200,
        f'{{"choices": [{{"message": {{"content": "\\ud800", "tool_calls": [{call}]}}}}]}}',
    )
    said = client(chat_server).complete(BODY)
    assert said.text == "?" and said.calls[0]["function"]["arguments"] == "?"


def test_a_refusing_address_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(ServerUnavailable, match="Connection refused.* Check that the server runs"):
        ChatClient(url, patience=QUICK).models()


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A socket that takes connections and says nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening


def test_a_stalling_server_is_given_up(silent: socket.socket) -> None:
    url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
    with pytest.raises(ServerUnavailable, match="in 2 tries: .*timed out"):
        ChatClient(url, patience=Patience(0.05, 1, 0.01)).complete(BODY)


@pytest.mark.parametrize("seconds", [float("nan"), -1, 0, float("inf"), 1e12])
def test_a_time_out_that_no_clock_holds_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match="a time-out is above 0 and up to 1,000,000 seconds, not "):
        Patience(timeout=seconds)


TRICKLES = {
    "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "header": (b"HTTP/1.1 200 OK\r\nX: ", b"y"),
    "status": (b"HTTP/1.1 200 ", b"y"),
    "continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


@pytest.mark.parametrize("where", TRICKLES)
def test_a_trickling_server_is_given_up(silent: socket.socket, where: str) -> None:
    first, again = TRICKLES[where]
    done = threading.Event()

    def trickle() -> None:
        connection, _ = silent.accept()
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(first)
            while not done.wait(0.02):
                connection.sendall(again)

    thread = threading.Thread(target=trickle)
    thread.start()
    url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
    with pytest.raises(
        ServerUnavailable, match=r"in 1 try: timed out: .* did not end within 0.3 s"
    ):
        ChatClient(url, patience=Patience(0.3, 0, 0.01)).complete(BODY)
    done.set()
    thread.join()


def test_a_refusal_that_trickles_is_given_up_too(silent: socket.socket) -> None:
    done = threading.Event()

    def trickle() -> None:
        connection, _ = silent.accept()
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 400 No\r\nContent-Length: 100000\r\n\r\n")
            while not done.wait(0.02):
                connection.sendall(b" ")

    thread = threading.Thread(target=trickle)
    thread.start()
    url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
    with pytest.raises(ServerRefused, match=r"HTTP 400: \(what it said broke off\)"):
        ChatClient(url, patience=Patience(0.3, 0, 0.01)).complete(BODY)
    done.set()
    thread.join()


def test_a_status_line_of_garbage_is_shown_harmlessly(silent: socket.socket) -> None:
    def garble() -> None:
        connection, _ = silent.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"\x1b[2J a-secret \x07\x9b31m\r\n\r\n")

    thread = threading.Thread(target=garble)
    thread.start()
    url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
    with pytest.raises(ServerUnavailable, match=r"BadStatusLine: \\x1b\[2J \*\*\*") as caught:
        ChatClient(url, key="a-secret", patience=Patience(10, 0)).complete(BODY)
    thread.join()
    assert str(caught.value).isprintable() and "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "target", ["http://\x1b[31mevil/", "http://[::1", "file:///etc/passwd", ""]
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_no_address_is_named(chat_server: Any, target: str, status: int) -> None:
    chat_server.answer = lambda _: (status, "")
    chat_server.script.append((status, {"Location": target}, ""))
    with pytest.raises(ServerRefused, match=f"HTTP {status}: it moved to ") as caught:
        client(chat_server).complete(BODY)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "answer", ['{"data": 5}', '{"data": true}', '{"data": {"id": "m"}}', "[]", "null", '"m"']
)
def test_what_is_no_list_of_models_is_one_clear_error(chat_server: Any, answer: str) -> None:
    chat_server.models = answer
    with pytest.raises(ServerGarbled, match="that is no list of models: .*or name the model"):
        client(chat_server).models()


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ('{"data": null}', []),
        ('{"data": [5, {"id": 3}, {"no": "id"}, {"id": "m"}]}', ["m"]),
        ('{"data": [{"id": "a\\ud800b"}]}', ["a?b"]),
    ],
)
def test_models_are_named_by_text_that_can_be_written(
    chat_server: Any, answer: str, names: list[str]
) -> None:
    chat_server.models = answer
    assert client(chat_server).models() == names


@pytest.mark.parametrize("depth", [101, 300, 600])
def test_an_answer_nested_beyond_reason_is_one_clear_error(
    chat_server: Any, chat_body: Any, depth: int
) -> None:
    call = {**CALL, "function": {"name": "ping", "arguments": "DEEP"}}
    body = chat_body(None, [call]).replace('"DEEP"', "[" * depth + "]" * depth)
    chat_server.answer = lambda _: (200, body)
    with pytest.raises(ServerGarbled, match="nested more than 100 deep"):
        client(chat_server).complete(BODY)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "localhost:8000",
        "http://",
        "http://host:port/v1",
        "http://host:0/v1",
        "http://ho st/v1",
        "http://[::1/v1",
        "http://host/\u00e4",
    ],
)
def test_addresses_are_checked(url: str) -> None:
    with pytest.raises(UsageError, match="must begin with http:// or https:// and name a host"):
        ChatClient(url)


@pytest.mark.parametrize("url", ["http://me:word@host/v1", "http://host/v1?key=word"])
def test_an_address_holds_no_secret(url: str) -> None:
    with pytest.raises(UsageError, match="give a key by an environment variable") as caught:
        ChatClient(url)
    assert "word" not in str(caught.value).replace("password", "")


def test_a_key_is_read_without_its_line_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", " sk-1\n")
    assert key_from("A_KEY") == "sk-1"
    assert key_from("NO_SUCH_KEY") == ""
    for wrong in ("sk-1\nsk-2", "schl\u00fcssel", "two words"):
        monkeypatch.setenv("A_KEY", wrong)
        with pytest.raises(UsageError, match="the key in A_KEY holds") as caught:
            key_from("A_KEY")
        assert wrong not in str(caught.value)


def test_many_are_answered_in_order_and_a_failure_stops_the_rest(
    chat_server: Any, chat_body: Any
) -> None:
    chat_server.answer = lambda body: (200, chat_body(body["model"]))
    bodies = [{**BODY, "model": str(n)} for n in range(9)]
    said = client(chat_server).complete_all(bodies, 4)
    assert [row.text for row in said if isinstance(row, Completion)] == [str(n) for n in range(9)]
    assert client(chat_server).complete_all([], 4) == []
    chat_server.answer = lambda body: (400, "no") if body["model"] == "2" else (200, chat_body("y"))
    first, second, failed, *others = client(chat_server).complete_all(bodies, 1)
    assert first == second == Completion("y")
    assert isinstance(failed, ServerRefused) and others == [None] * 6
