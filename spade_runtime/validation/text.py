"""Makes text from environments safe to print: nothing in it can steer a terminal or a CI runner."""

from __future__ import annotations

import re

# C0 and C1 controls, line and paragraph separators, zero-width and bidirectional controls, tags,
# the byte-order mark, and surrogates without a partner.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_COMMAND = re.compile(r"::(?=[A-Za-z])|##(?=\[)|%(?=0[ADad])")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(found: re.Match[str]) -> str:
    char = found.group()
    if char in _NAMED:
        return _NAMED[char]
    number = ord(char)
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def visible(text: str, limit: int = 400) -> str:
    r"""One printable line: control characters as escapes, workflow commands broken up, cut.

    Args:
        text: any text, lone surrogates included.
        limit: how many characters of it are kept; a longer one says how many were left out.

    >>> visible("red\x1b[31m\nalert"), visible("::set-env name=A::b")
    ('red\\x1b[31m\\nalert', '\\x3a:set-env name=A\\x3a:b')
    >>> visible("a" * 9, limit=4)
    'aaaa… (5 more characters)'
    """
    rest = len(text) - limit
    if rest > 0:
        text = text[:limit]
    safe = _HIDDEN.sub(_escape, text)
    safe = _COMMAND.sub(lambda found: f"\\x{ord(found.group()[0]):02x}{found.group()[1:]}", safe)
    return f"{safe}… ({rest} more characters)" if rest > 0 else safe


def steady(text: str) -> str:
    """A text without the memory addresses in it, which differ in every run.

    >>> steady("<Flag object at 0x7f12ab34cd56>")
    '<Flag object at 0x...>'
    """
    return _ADDRESS.sub("0x...", text)


def parting(left: str, right: str) -> str:
    """Where two texts part, without what stands there: that may differ in every run.

    >>> parting("ticket 4711 for Ana", "ticket 4722 for Ana")
    "is another after 'ticket '"
    """
    place = next(
        (i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b),
        min(len(left), len(right)),
    )
    # Back to the beginning of the word: numbers that differ may begin alike by chance.
    while place and left[place - 1].isalnum():
        place -= 1
    same = left[max(0, place - 40) : place]
    return f"is another after {shown(same)}" if same else "is another from its beginning on"


def shown(value: str, limit: int = 80) -> str:
    """A text in quotes, as messages give values that were seen.

    >>> shown("go north")
    "'go north'"
    """
    return f"'{visible(value, limit)}'"
