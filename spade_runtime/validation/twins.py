"""Near-duplicates (SPD704): sources that are the same once names and words are put aside.

Works on the text alone, with one linear pass of a lexer: the parent never parses a source that
nobody trusts. Candidates come from MinHash bands, so that ten thousand files are compared in
seconds; a candidate counts when the exact Jaccard index of the shingles says so.
"""

from __future__ import annotations

import hashlib
import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

THRESHOLD = 0.82
"""Jaccard index of two sources' shingles from which they count as twins."""
_SHINGLE = 6
_BANDS, _ROWS = 16, 4
_PRIME = (1 << 61) - 1

_TOKEN = re.compile(
    r"(?P<space>[ \t\f\r]+|#[^\n]*|\\\n)"
    r"|(?P<text>[rbuRBUfFtT]{0,2}(?:\"\"\"(?:[^\\\"]|\\.|\"(?!\"\"))*(?:\"\"\"|\Z)"
    r"|'''(?:[^\\']|\\.|'(?!''))*(?:'''|\Z)"
    r"|\"(?:[^\\\"\n]|\\.)*\"?|'(?:[^\\'\n]|\\.)*'?))"
    r"|(?P<number>\d[\w.]*)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<line>\n[ \t]*)"
    r"|(?P<mark>[-+*/%<>=!&|^@~]+|.)",
    re.DOTALL,
)
# Names that say what a program does; every other name is put aside.
_TELLING_TEXT = (
    "abs all any append bisect bool choice choices chr combinations count Counter deque dict "
    "divmod enumerate find float format gcd heappop heappush index insert int isdigit items "
    "join json keys lcm len list lower lstrip map math max min obs ord partition pop pow "
    "product randint random randrange range re remove replace reset reversed round sample set "
    "shuffle sort sorted split startswith step str strip sum tool tuple Turn update upper "
    "values zip setup user_turns solution call done match search fullmatch sub"
)
_TELLING = frozenset(keyword.kwlist) | frozenset(_TELLING_TEXT.split(" "))


@dataclass(frozen=True, slots=True)
class Print:
    """The fingerprint of one source.

    Attributes:
        label: how a message names the source (its path, or its place in a pool).
        sha256: hash of the source.
        shingles: hashes of the token sequences, sorted.
        bands: hashes of the MinHash bands.
    """

    label: str
    sha256: str
    shingles: NDArray[np.uint64]
    bands: tuple[int, ...]


def _tokens(source: str) -> list[str]:
    kept: list[str] = []
    for found in _TOKEN.finditer(source):
        kind = found.lastgroup
        text = found.group()
        if kind == "space" or (kind == "line" and kept and kept[-1] == "\n"):
            continue
        if kind == "text":
            # A constant of a class or call counts as one word whatever it says.
            if not (kept and kept[-1] == "$"):
                kept.append("$")
        elif kind == "name":
            kept.append(text if text in _TELLING else "_")
        else:
            kept.append("\n" if kind == "line" else text)
    return kept


def _generators() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    block = b"".join(hashlib.sha256(f"spade minhash {i}".encode()).digest() for i in range(64))
    numbers = np.frombuffer(block, dtype="<u8")[: 2 * _BANDS * _ROWS]
    return numbers[: _BANDS * _ROWS] | np.uint64(1), numbers[_BANDS * _ROWS :]


def fingerprint(source: str, label: str, sha256: str) -> Print:
    """Take the fingerprint of a source, in time linear in its length."""
    kept = _tokens(source)
    grams = {"\x1f".join(kept[i : i + _SHINGLE]) for i in range(max(1, len(kept) - _SHINGLE + 1))}
    digests = b"".join(hashlib.blake2b(g.encode(), digest_size=8).digest() for g in sorted(grams))
    shingles = np.unique(np.frombuffer(digests, dtype="<u8"))
    factors, offsets = _generators()
    # Multiplication modulo 2**64 followed by a shift mixes well enough for MinHash.
    mixed = (shingles[None, :] * factors[:, None] + offsets[:, None]) >> np.uint64(17)
    minima = mixed.min(axis=1).reshape(_BANDS, _ROWS)
    bands = tuple(
        int.from_bytes(hashlib.blake2b(bytes([i]) + row.tobytes(), digest_size=8).digest(), "big")
        for i, row in enumerate(minima)
    )
    return Print(label, sha256, shingles, bands)


def similarity(left: Print, right: Print) -> float:
    """Jaccard index of two fingerprints' shingles, in [0, 1]."""
    shared = np.intersect1d(left.shingles, right.shingles, assume_unique=True).size
    total = left.shingles.size + right.shingles.size - shared
    return float(shared / total) if total else 0.0


class TwinIndex:
    """Fingerprints that later ones are compared with.

    >>> index = TwinIndex()
    >>> index.nearest(fingerprint("class A: pass", "a", "0")) is None
    True
    """

    def __init__(self, prints: Iterable[Print] = ()) -> None:
        self._bands: dict[int, list[Print]] = {}
        for item in prints:
            self.add(item)

    def add(self, item: Print) -> None:
        """Make a fingerprint one that later ones are compared with."""
        for band in item.bands:
            self._bands.setdefault(band, []).append(item)

    def nearest(self, item: Print) -> tuple[Print, float] | None:
        """The most similar fingerprint at or over the threshold, the first added of equals."""
        seen: dict[int, Print] = {}
        for band in item.bands:
            for other in self._bands.get(band, ()):
                seen.setdefault(id(other), other)
        best: tuple[Print, float] | None = None
        for other in seen.values():
            score = similarity(item, other)
            if score >= THRESHOLD and (best is None or score > best[1]):
                best = (other, score)
        return best


def twin_message(other: Print, score: float) -> str:
    """What a finding says of a near-duplicate."""
    return f"with names and words put aside, {score:.0%} of the source is that of {other.label}"
