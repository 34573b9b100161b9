"""One HTTP request to a chat server: what was answered, or the trouble that a retry may end."""

from __future__ import annotations

import http.client
import io
import json
import socket
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from spade_runtime.validation.text import visible

AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""HTTP statuses that pass."""
ANSWER_BYTES = 16 * 1024 * 1024
"""More than any message of a model takes."""
_ERROR_BYTES = 2000
_SAID_CHARS = 300


class Trouble(Exception):
    """A request without an answer, which may be sent again.

    Attributes:
        after: seconds that the server asks to wait; None where it says nothing.
        passes: whether to try again can help.
    """

    def __init__(self, reason: str, after: float | None = None, *, passes: bool = True) -> None:
        super().__init__(reason)
        self.after = after
        self.passes = passes


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered.

    Attributes:
        status: the HTTP status.
        data: the body.
        cut: whether the body is longer than what is kept.
    """

    status: int
    data: bytes
    cut: bool = False


def told(text: str, key: str) -> str:
    """One line to show of what a server said, without the key."""
    return visible(text.replace(key, "***") if key else text, _SAID_CHARS)


class _Deadline:
    """The time by which an answer must have come whole."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds that remain.

        Raises:
            Trouble: none do.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.missed()
        return left

    def missed(self) -> Trouble:
        return Trouble(f"timed out: the answer did not end within {self.seconds:g} s")


class _Arriving(io.RawIOBase):
    """What a socket receives, until the deadline.

    A socket's own time-out begins anew with every byte, so that a server which sends one now and
    then, be it of its headers, would be waited for without end.
    """

    def __init__(self, connected: socket.socket, deadline: _Deadline) -> None:
        super().__init__()
        self._socket, self._deadline = connected, deadline
        # It counts as a user of the socket, which the connection closes before the body is read.
        self._file = connected.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._socket.settimeout(self._deadline.left())
        try:
            return self._file.readinto(buffer)
        except TimeoutError as error:
            raise self._deadline.missed() from error

    def close(self) -> None:
        self._file.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """A response whose status, headers and body must come before one deadline."""

    def __init__(self, connected: socket.socket, *rest: Any, deadline: _Deadline, **more: Any):
        super().__init__(connected, *rest, **more)
        self.fp.close()
        self.fp = io.BufferedReader(_Arriving(connected, deadline))


class _Punctual(urllib.request.HTTPHandler):
    """Opens connections whose responses keep the deadline."""

    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._responses = partial(_Response, deadline=deadline)

    https_request = urllib.request.HTTPHandler.http_request

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._plain, req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._secure, req)

    def _plain(self, host: str, **options: Any) -> http.client.HTTPConnection:
        return self._punctual(http.client.HTTPConnection(host, **options))

    def _secure(self, host: str, **options: Any) -> http.client.HTTPConnection:
        return self._punctual(http.client.HTTPSConnection(host, **options))

    def _punctual(self, connection: http.client.HTTPConnection) -> http.client.HTTPConnection:
        connection.response_class = self._responses  # type: ignore[assignment]
        return connection


def _opener(deadline: _Deadline) -> urllib.request.OpenerDirector:
    """Build an opener that follows no redirect.

    A redirect would carry the key to another host, and turn the request into a GET.
    """
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        _Punctual(deadline),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    return opener


def send(url: str, body: dict[str, Any] | None, *, key: str, timeout: float) -> Reply:
    """Send one request; a body makes it a POST.

    Args:
        url: the address.
        body: what is sent, as JSON.
        key: sent as a bearer token where it is not empty, and never shown.
        timeout: seconds until the answer, with its headers, must have come whole.

    Raises:
        Trouble: no answer came whole and in time, or its status says to come again.
    """
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers=headers)
    deadline = _Deadline(timeout)
    try:
        with _opener(deadline).open(request, timeout=timeout) as response:
            return _body(response, deadline)
    except urllib.error.HTTPError as error:
        return _refused(error, key)
    except urllib.error.URLError as error:
        trusted = not isinstance(error.reason, ssl.SSLCertVerificationError)
        said = told(f"{type(error).__name__}: {error.reason}", key)
        raise Trouble(said, passes=trusted) from error
    except (http.client.HTTPException, OSError, UnicodeError) as error:
        raise Trouble(told(f"{type(error).__name__}: {error}", key)) from error


def _refused(error: urllib.error.HTTPError, key: str) -> Reply:
    """What a status beyond 299 means, in the server's words.

    Raises:
        Trouble: it says to come again.
    """
    with error:
        reply = Reply(error.code, _beginning(error))
    if error.code in AGAIN:
        after = _seconds(error.headers.get("Retry-After"))
        said = told(reply.data.decode(errors="replace"), key)
        raise Trouble(f"HTTP {error.code}: {said}", after) from error
    if 300 <= error.code < 400:
        target = error.headers.get("Location", "nowhere")
        return Reply(error.code, f"it moved to {target}; name that address".encode())
    return reply


def _body(response: http.client.HTTPResponse, deadline: _Deadline) -> Reply:
    """Read a body in parts, up to the most that is kept."""
    data = bytearray()
    while part := response.read1(1 << 16):
        data += part
        if len(data) > ANSWER_BYTES:
            return Reply(response.status, bytes(data[:ANSWER_BYTES]), cut=True)
        deadline.left()
    if response.length:
        raise Trouble(f"the connection broke {response.length:,} bytes before the answer's end")
    return Reply(response.status, bytes(data))


def _beginning(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(_ERROR_BYTES)
    except (http.client.HTTPException, OSError, Trouble):
        return b"(what it said broke off)"


def _seconds(header: str | None) -> float | None:
    """Read a `Retry-After`: seconds, or the date to wait for."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    now = datetime.now(UTC)
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds())
