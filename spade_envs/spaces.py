"""`UnicodeText`: a space of any text that encodes as UTF-8."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gymnasium.spaces import Space

_SAMPLE_CHARS = 48
# Printable letters of several scripts, digits, marks and a few astral characters: garbage that an
# environment has to take in its stride. Blanks stand twice, so that samples fall into words.
_ALPHABET = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    "  .,;:!?'\"-_+*/\\=<>()[]{}|&%$#@^~`"
    "äöüßéèñçøåŁžΩλπЖяأب中文字かな한글"
    "\u2013\u2026\u20ac\u2260\u00bd\U0001f600\U0001f9ed\U0001d54f"
)


class UnicodeText(Space[str]):
    r"""Text of a bounded length, of whatever characters, as long as it encodes as UTF-8.

    Gymnasium's `Text` keeps a set of allowed characters and looks every one up, which takes
    milliseconds for a long observation; here a test of membership takes microseconds, and no
    alphabet has to be named. Lone surrogates are no text: they can't be encoded.

    Args:
        max_length: most characters.
        min_length: fewest characters.
        seed: seeds `sample`.

    >>> space = UnicodeText(max_length=20, seed=0)
    >>> "Größe 中" in space, "\ud800" in space, 3 in space
    (True, False, False)
    >>> space.sample() in space
    True
    """

    def __init__(
        self, max_length: int = 1_000_000, *, min_length: int = 0, seed: int | None = None
    ) -> None:
        if not 0 <= min_length <= max_length:
            raise ValueError(f"0 <= min_length <= max_length, got {min_length} and {max_length}")
        self.max_length = int(max_length)
        self.min_length = int(min_length)
        super().__init__(dtype=str, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Text does not flatten into a box."""
        return False

    def contains(self, x: Any) -> bool:
        """Whether `x` is a `str` of an allowed length that encodes as UTF-8."""
        if not isinstance(x, str) or not self.min_length <= len(x) <= self.max_length:
            return False
        if x.isascii():
            return True
        try:
            x.encode("utf-8")
        except UnicodeEncodeError:
            return False
        return True

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Draw a short text of printable characters of several scripts.

        Raises:
            ValueError: a mask or probabilities were given; this space has no finite alphabet.
        """
        if mask is not None or probability is not None:
            raise ValueError("UnicodeText samples without mask or probability")
        longest = max(self.min_length, min(self.max_length, _SAMPLE_CHARS))
        length = int(self.np_random.integers(self.min_length, longest + 1))
        places = self.np_random.integers(len(_ALPHABET), size=length)
        return "".join(_ALPHABET[place] for place in places)

    def to_jsonable(self, sample_n: Iterable[str]) -> list[str]:
        """A batch of samples as JSON takes it."""
        return list(sample_n)

    def from_jsonable(self, sample_n: list[Any]) -> list[str]:
        """A batch of samples as JSON gives it."""
        return [str(sample) for sample in sample_n]

    def __repr__(self) -> str:
        return f"UnicodeText(max_length={self.max_length}, min_length={self.min_length})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, UnicodeText)
            and self.max_length == other.max_length
            and self.min_length == other.min_length
        )

    def __hash__(self) -> int:
        return hash((self.max_length, self.min_length))
