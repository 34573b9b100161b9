"""One HTTP request to a chat server: what was answered, or the trouble that a retry may end."""

from __future__ import annotations

import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
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


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another host, and turn the request into a GET."""

    def redirect_request(self, *_: Any) -> None:
        """Follow nothing."""


def send(url: str, body: dict[str, Any] | None, *, key: str, timeout: float) -> Reply:
    """Send one request; a body makes it a POST.

    Raises:
        Trouble: no answer came whole and in time, or its status says to come again.
    """
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers=headers)
    opener = urllib.request.build_opener(_NoRedirect)
    deadline = time.monotonic() + timeout
    try:
        with opener.open(request, timeout=timeout) as response:
            return _body(response, deadline)
    except urllib.error.HTTPError as error:
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
    except urllib.error.URLError as error:
        trusted = not isinstance(error.reason, ssl.SSLCertVerificationError)
        raise Trouble(f"{type(error).__name__}: {error.reason}", passes=trusted) from error
    except (http.client.HTTPException, OSError, UnicodeError) as error:
        raise Trouble(f"{type(error).__name__}: {error}") from error


def _body(response: http.client.HTTPResponse, deadline: float) -> Reply:
    """Read a body in parts, so that a server that trickles it meets the deadline too."""
    data = bytearray()
    while part := response.read1(1 << 16):
        data += part
        if len(data) > ANSWER_BYTES:
            return Reply(response.status, bytes(data[:ANSWER_BYTES]), cut=True)
        if time.monotonic() > deadline:
            raise Trouble(f"the answer did not end in time ({len(data):,} bytes came)")
    if response.length:
        raise Trouble(f"the connection broke {response.length:,} bytes before the answer's end")
    return Reply(response.status, bytes(data))


def _beginning(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(_ERROR_BYTES)
    except (http.client.HTTPException, OSError):
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
    except ValueError:
        return None
    now = datetime.now(UTC)
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds())
