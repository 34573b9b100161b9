"""Near-duplicates: code that plays the same under other names, and code that hardly differs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256

NEAR = 0.9
_SHINGLE = 5

_TOKEN = re.compile(
    r"""
    (?P<comment>\#[^\n]*)
  | (?P<text>[rbfuRBFU]{0,2}(?:\"{3}[\s\S]*?(?:\"{3}|\Z)|'{3}[\s\S]*?(?:'{3}|\Z)
        |"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))
  | (?P<word>\w+(?:\.\d+)?)
  | (?P<line>\n)
  | (?P<mark>[^\w\s])
    """,
    re.VERBOSE,
)
_OPENING, _CLOSING = "([{", ")]}"


def normalise_source(source: str) -> str:
    r"""Return code without what does not change its play: layout, comments, docstrings, its name.

    The class's name and its `title` go too. Code need not parse; what is left is its tokens.

    >>> a = "class AEnv:\n    '''One.'''\n    N = 3  # three"
    >>> normalise_source(a) == normalise_source("class BEnv:\n  'Two.'\n  N = 3")
    True
    """
    kept: list[str] = []
    for line in _lines(source):
        only_text = len(line) == 1 and line[0][0] == "text"
        title = len(line) == 3 and [token for _, token in line[:2]] == ["title", "="]
        if only_text or title:
            continue
        words = [_plain_text(token) if kind == "text" else token for kind, token in line]
        if words[0] == "class" and len(words) > 1 and words[1].endswith("Env"):
            words[1] = "Env"
        kept += [*words, ";"]
    return " ".join(kept)


def source_key(source: str) -> str:
    """Return the hash of the normalised source: equal for code that plays the same."""
    return sha256(normalise_source(source).encode("utf-8", "surrogatepass")).hexdigest()


def shingles(normal: str) -> frozenset[tuple[str, ...]]:
    """Return the runs of five tokens of a normalised source."""
    tokens = re.findall(r"\w+|[^\w\s]", normal)
    if len(tokens) <= _SHINGLE:
        return frozenset({tuple(tokens)})
    return frozenset(tuple(tokens[i : i + _SHINGLE]) for i in range(len(tokens) - _SHINGLE + 1))


def jaccard(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> float:
    """Return the share of runs that two sources have in common."""
    return len(a & b) / len(a | b) if a and b else 0.0


def _lines(source: str) -> Iterator[list[tuple[str, str]]]:
    """Yield the (kind, token) pairs of each logical line that holds any."""
    line: list[tuple[str, str]] = []
    depth = 0
    for match in _TOKEN.finditer(source):
        kind, token = match.lastgroup or "", match.group()
        if kind == "comment":
            continue
        if kind == "line":
            if line and depth <= 0:
                yield line
                line, depth = [], 0
            continue
        if kind == "mark":
            depth += (token in _OPENING) - (token in _CLOSING)
        line.append((kind, token))
    if line:
        yield line


def _plain_text(token: str) -> str:
    """Return a text token with double quotes, where that says the same."""
    if len(token) > 1 and token[0] == token[-1] == "'" and not set(token[1:-1]) & set("'\"\\"):
        return f'"{token[1:-1]}"'
    return token
