"""Reads one JSON value out of an agent's text, in linear time and without guessing.

Where the text is written with Python's quotes and constants (`{'insured': True}`) a second reader
takes it; apart from those spellings it accepts nothing that JSON does not.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

DIGITS_MAX = 400
DEPTH_MAX = 64

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"(-?(?:0|[1-9]\d*))(\.\d+)?([eE][-+]?\d+)?")
_PLAIN = {"'": re.compile(r"[^'\\]*"), '"': re.compile(r'[^"\\]*')}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\\": "\\", "/": "/"}
_CONSTANTS = {"True": True, "False": False, "None": None, "true": True, "false": False}
_CONSTANTS["null"] = None
_WORD = re.compile(r"[A-Za-z]+")
_HEX = re.compile(r"[0-9a-fA-F]{4}")


class Unreadable(ValueError):
    """Text that is no value; `position` counts characters of the whole text from 0."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


def _integer(digits: str) -> int:
    if len(digits) > DIGITS_MAX:
        raise Unreadable(f"a number of {len(digits)} digits; at most {DIGITS_MAX}")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise Unreadable(f"the number {digits[:20]} is too large")
    return value


def _constant(name: str) -> Any:
    raise Unreadable(f"{name} is no JSON value")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise Unreadable(f"key {key[:60]!r} given twice")
            seen.add(key)
    return found


# Raw line ends inside strings are taken as they are (strict=False): models write them often, and
# there is one reading of them.
_JSON = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_integer,
    parse_float=_float,
    parse_constant=_constant,
    strict=False,
)


def skip_space(text: str, position: int) -> int:
    """The first position at or after `position` that holds no white space."""
    found = _SPACE.match(text, position)
    return found.end() if found else position


def read_value(text: str, position: int) -> tuple[Any, int]:
    """Read the value that begins at `position`.

    Returns:
        The value and the position after it.

    Raises:
        Unreadable: the text is no JSON value, gives a key twice, is nested too deep, or holds a
            number that is not finite or too long.
    """
    try:
        value, end = _JSON.raw_decode(text, position)
    except json.JSONDecodeError as problem:
        # Python's spelling stops the JSON reader at a quote or at a capital letter.
        if text[problem.pos : problem.pos + 1] in ("'", "T", "F", "N"):
            try:
                return _PythonReader(text).value(position, 0)
            except Unreadable as other:
                raise other from None
        raise Unreadable(_explain(text, problem), problem.pos) from None
    except RecursionError:
        raise Unreadable("nested too deep", position) from None
    if too_deep(value):
        raise Unreadable("nested too deep", position)
    return value, end


def too_deep(value: Any, limit: int = DEPTH_MAX) -> bool:
    """Whether lists and objects stand inside of each other more than `limit` deep.

    Whatever walks a value by calling itself (`repr`, JSON, the schemas) ends in a RecursionError at
    some depth, which is another one with every caller; this walk does not.

    >>> too_deep([[3]], limit=1), too_deep({"a": [3]}, limit=2)
    (True, False)
    """
    level = [value]
    for _ in range(limit):
        level = [
            inner
            for one in level
            if isinstance(one, Mapping | list | tuple)
            for inner in (one.values() if isinstance(one, Mapping) else one)
        ]
        if not level:
            return False
    return any(isinstance(one, Mapping | list | tuple) for one in level)


def _explain(text: str, problem: json.JSONDecodeError) -> str:
    place = text[problem.pos : problem.pos + 1]
    if not place or problem.msg.startswith("Unterminated string"):
        return "the text ends before the value does"
    if place in "}],":
        before = text[max(0, problem.pos - 200) : problem.pos].rstrip()[-1:]
        if (place != "," and before == ",") or problem.msg.startswith("Illegal trailing comma"):
            return "trailing comma"
    return problem.msg[:1].lower() + problem.msg[1:]


class _PythonReader:
    """JSON written with Python's quotes and constants."""

    def __init__(self, text: str) -> None:
        self.text = text

    def value(self, position: int, depth: int) -> tuple[Any, int]:
        position = skip_space(self.text, position)
        if depth > DEPTH_MAX:
            raise Unreadable("nested too deep", position)
        start = self.text[position : position + 1]
        if start == "{":
            return self._items(position + 1, "}", depth, self._pair, _object)
        if start == "[":
            return self._items(position + 1, "]", depth, self.value, list)
        if start in ("'", '"') and start:
            return self.string(position)
        number = _NUMBER.match(self.text, position)
        if number:
            whole, point, exponent = number.groups()
            digits = number.group()
            return (_float(digits) if point or exponent else _integer(whole)), number.end()
        word = _WORD.match(self.text, position)
        if word and word.group() in _CONSTANTS:
            return _CONSTANTS[word.group()], word.end()
        raise Unreadable("expecting a value" if start else "the text ends early", position)

    def _items(
        self,
        position: int,
        end: str,
        depth: int,
        read: Callable[[int, int], tuple[Any, int]],
        build: Callable[[list[Any]], Any],
    ) -> tuple[Any, int]:
        found: list[Any] = []
        position = skip_space(self.text, position)
        if self.text.startswith(end, position):
            return build(found), position + 1
        while True:
            item, position = read(position, depth + 1)
            found.append(item)
            position = skip_space(self.text, position)
            if self.text.startswith(end, position):
                return build(found), position + 1
            if not self.text.startswith(",", position):
                raise Unreadable(f"expecting , or {end}", position)
            position = skip_space(self.text, position + 1)
            if self.text.startswith(end, position):
                raise Unreadable("trailing comma", position)

    def _pair(self, position: int, depth: int) -> tuple[tuple[str, Any], int]:
        position = skip_space(self.text, position)
        if self.text[position : position + 1] not in ("'", '"'):
            raise Unreadable("expecting a key in quotes", position)
        key, position = self.string(position)
        position = skip_space(self.text, position)
        if not self.text.startswith(":", position):
            raise Unreadable("expecting : after the key", position)
        item, position = self.value(position + 1, depth)
        return (key, item), position

    def string(self, position: int) -> tuple[str, int]:
        quote = self.text[position]
        parts: list[str] = []
        position += 1
        while True:
            plain = _PLAIN[quote].match(self.text, position)
            if plain is None or plain.end() >= len(self.text):
                raise Unreadable("the text ends before the value does", position)
            parts.append(plain.group())
            position = plain.end()
            if self.text[position] == quote:
                return "".join(parts), position + 1
            part, position = self._escape(position + 1, quote)
            parts.append(part)

    def _escape(self, position: int, quote: str) -> tuple[str, int]:
        letter = self.text[position : position + 1]
        if letter in ("'", '"') and letter:
            return letter, position + 1
        if letter == "u":
            digits = _HEX.match(self.text, position + 1)
            if digits:
                return chr(int(digits.group(), 16)), position + 5
        if letter in _ESCAPES:
            return _ESCAPES[letter], position + 1
        raise Unreadable("an escape that JSON does not have", position - 1)
