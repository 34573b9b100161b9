"""Turns what a class returned into values that the wire has, inside the child.

Types are taken exactly (`type(x) is str`): a subclass can lie about its length and its equality.
Nothing here decides anything; the parent checks every value again.
"""

from __future__ import annotations

import json
import math
from typing import Any

from spade_runtime.guards import PolicyViolation
from spade_runtime.sandbox.capture import PrintedTooMuch
from spade_runtime.sandbox.wire import BAD_REPR_MAX, TEXT_MAX, Bad, Raised

SOURCE_NAME = "<environment>"
_PLAIN = (int, float, complex, bool, bytes, type(None))
_FLOAT_EXACT = 1 << 53
_to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def clean(text: str, length: int) -> str:
    """Shorten a text and replace what does not encode."""
    return text[:length].encode("utf-8", "replace").decode()


def bad(value: Any, reason: str = "") -> Bad:
    """Describe a value that can't be sent; what its own `repr` raises goes no further."""
    name = clean(type(value).__name__, 100)
    if type(value) is str:
        # Slice first: the text may be very large.
        return Bad(name, ascii(value[:BAD_REPR_MAX])[:BAD_REPR_MAX], clean(reason, TEXT_MAX))
    try:
        text = repr(value)
        shown = clean(str.__str__(text), BAD_REPR_MAX)
    except (MemoryError, PrintedTooMuch):
        raise
    except BaseException:
        shown = f"<{name}>"
    return Bad(name, shown, clean(reason, TEXT_MAX))


def text(value: Any) -> str | Bad:
    """A text of exactly the type `str` that encodes as UTF-8."""
    if type(value) is not str:
        return bad(value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as problem:
            return bad(value, f"does not encode as UTF-8: {problem.reason}")
    return value


def number(value: Any) -> float | Bad:
    """A real number of exactly the type `float` or `int`; one too large is sent as infinite."""
    if type(value) is float:
        return value
    if type(value) is int:
        if -_FLOAT_EXACT < value < _FLOAT_EXACT:
            return float(value)
        return math.inf if value > 0 else -math.inf
    return bad(value)


def flag(value: Any) -> bool | Bad:
    """A value of exactly the type `bool`."""
    return value if type(value) is bool else bad(value)


def mapping(value: Any) -> bytes | Bad:
    """An `info` dictionary as JSON."""
    if type(value) is not dict:
        return bad(value)
    if not value:
        return b"{}"
    try:
        return _to_json(value).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        return Bad("dict", "", clean(f"not JSON: {problem}", TEXT_MAX))


def _line(error: BaseException) -> int | None:
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == SOURCE_NAME:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def raised(phase: str, error: BaseException) -> Raised:
    """Describe an exception that left the class's code, with the code that outranks the call's."""
    kind = type(error)
    try:
        message = clean(str.__str__(str(error)), TEXT_MAX)
    except BaseException:
        message = ""
    code = ""
    if isinstance(error, MemoryError):
        code = "SPD802"
    elif kind is PrintedTooMuch:
        code = "SPD804"
    elif isinstance(error, PolicyViolation):
        code = error.code
    return Raised(phase, clean(kind.__name__, 100), message, _line(error), code)
