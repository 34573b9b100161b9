"""Documents for the designer: streamed from files, drawn by seed and counter, cut by words.

A source is one of

- `builtin` or `builtin:TOPIC`: the documents that ship with the package,
- a `.jsonl` file, one object a line with `text` or `orig_doc` (and an `id` of its own),
- a `.parquet` file with such a column,
- a folder that `datasets` saved, or `hf:NAME` (`hf:NAME:SPLIT`) for a dataset of the model hub.

Nothing is held in memory but an index. A document that can't be used is reported, and the draw
goes on to the next.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from spade_runtime.errors import UsageError
from spade_train.corpus_sources import (
    BadDocument,
    DatasetSource,
    JsonlSource,
    ParquetSource,
    Raw,
    Source,
)
from spade_train.seeds import derive

BUILTIN = "builtin"
TOPICS = ("mathematics", "science", "procedures", "code")
# A draw gives up after this many bad documents in a row.
MAX_SKIPS = 1000
# Draws that are tried when a corpus is opened, before it is refused.
_TRIALS = 4

# Characters that a document may have for each of its words: a text without spaces is one word.
CHARS_A_WORD = 32

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Document:
    """One document, cut to the run's number of words.

    Attributes:
        id: its own id, or the file's name and line.
        text: the words that are kept, with the space between them.
        source: where it came from.
    """

    id: str
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A document that could not be used, and why."""

    where: str
    why: str


def cut_words(text: str, max_words: int) -> str:
    """Return the text up to the end of its `max_words`-th word; the space between words stays.

    Of a text without spaces, `CHARS_A_WORD` times as many characters stay.

    >>> cut_words("a  b c d", 2)
    'a  b'
    """
    text = text.lstrip()[: max_words * CHARS_A_WORD]
    end = 0
    for count, word in enumerate(_WORD.finditer(text), start=1):
        end = word.end()
        if count >= max_words:
            return text[:end]
    return text.rstrip()


class Corpus:
    """Documents of one or more sources, as if they were one list.

    Attributes:
        max_words: length to which documents are cut.
        problems: what could not be used so far.
    """

    def __init__(
        self,
        sources: Iterable[Source],
        *,
        max_words: int,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._sources = list(sources)
        self.max_words = max_words
        self.problems: list[Problem] = []
        self._warn = warn
        self._reported: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._sizes = [len(source) for source in self._sources]

    @classmethod
    def open(
        cls,
        sources: Iterable[str],
        *,
        max_words: int,
        warn: Callable[[str], None] = lambda _: None,
    ) -> Corpus:
        """Open sources by name; see the module's text.

        Args:
            sources: their names.
            max_words: length to which documents are cut.
            warn: told of documents that can't be used: of each kind of flaw the first, the tenth,
                the hundredth and so on.

        Raises:
            UsageError: a source does not exist, can't be read, or no document can be used.
        """
        names = list(sources)
        corpus = cls([_open(name) for name in names], max_words=max_words, warn=warn)
        if not len(corpus):
            raise UsageError(
                f"the corpus {', '.join(names) or '(none)'} holds no documents; "
                "name a JSONL file with `text` fields, or use ablation=no_corpus"
            )
        corpus._refuse_useless()
        return corpus

    def _refuse_useless(self) -> None:
        """Refuse now what the first draw of a run would, minutes later."""
        for counter in range(_TRIALS):
            try:
                self.draw(0, counter)
                return
            except UsageError as error:
                refused = error
        raise refused

    def __len__(self) -> int:
        return sum(self._sizes)

    def draw(self, seed: int, counter: int) -> Document:
        """Return the document that belongs to a seed and a counter.

        As the counter goes up, each document comes once before any comes again; every pass has an
        order of its own. A bad document's place is taken by the one after it.

        Raises:
            UsageError: no usable document was found.
        """
        size = len(self)
        turn, place = divmod(counter, size)
        start = _permuted(place, size, derive("corpus", seed, turn))
        skipped, tries = 0, 0
        while skipped < size and tries < MAX_SKIPS:
            found = self._read((start + skipped) % size)
            if isinstance(found, Document):
                return found
            skipped += 1 + found
            tries += 1
        raise UsageError(
            f"none of {min(size, skipped)} documents of the corpus could be used; the first "
            f"problem: {self.problems[0].where}: {self.problems[0].why}"
        )

    def _read(self, index: int) -> Document | int:
        """Return a document, or how many after a bad one share its fate."""
        for source, size in zip(self._sources, self._sizes, strict=True):
            if index >= size:
                index -= size
                continue
            try:
                return self._document(source.read(index), source.name)
            except BadDocument as bad:
                self._report(source.where(index), bad)
                return bad.rest
        raise IndexError(index)

    def _report(self, where: str, bad: BadDocument) -> None:
        if where in self._reported:
            return
        self._reported.add(where)
        self.problems.append(Problem(where, str(bad)))
        self._counts[bad.kind] += 1
        count = self._counts[bad.kind]
        if count == 1:
            self._warn(f"corpus: {where} can't be used and is passed over ({bad})")
        elif str(count).strip("0") == "1":  # 10, 100, ...
            self._warn(f"corpus: {count} documents so far can't be used ({bad.kind})")

    def _document(self, raw: Raw, source: str) -> Document:
        text = cut_words(raw.text, self.max_words)
        if not text:
            raise BadDocument("the document has no words")
        try:
            f"{text}{raw.id}".encode()
        except UnicodeEncodeError:  # JSON can name half of a pair, as "\ud800" is
            raise BadDocument("half of a surrogate pair, which is no character") from None
        return Document(raw.id, text, source)


def _open(name: str) -> Source:
    head, _, topic = name.partition(":")
    if head == BUILTIN:
        if topic and topic not in TOPICS:
            raise UsageError(f"there is no built-in topic {topic!r}; known are {', '.join(TOPICS)}")
        shipped = Path(str(files("spade_train").joinpath("data", "corpus.jsonl")))
        return JsonlSource(shipped, name=name, topic=topic or None)
    if head == "hf":
        return DatasetSource.hub(topic)
    path = Path(name)
    try:
        there = path.exists()
    except OSError as error:
        raise UsageError(f"can't read the corpus {name}: {error.strerror}") from None
    if not there:
        raise UsageError(
            f"the corpus source {name!r} does not exist; name a .jsonl or .parquet file, a dataset "
            "folder, builtin, or hf:NAME"
        )
    if path.is_dir():
        return DatasetSource.folder(path)
    if path.suffix == ".parquet":
        return ParquetSource(path)
    return JsonlSource(path)


def _permuted(place: int, size: int, key: int) -> int:
    """Return where a keyed permutation of range(size) sends a place, without building it.

    A Feistel network over the next even number of bits; what falls outside goes round again.
    """
    half = max(1, (max(1, size - 1).bit_length() + 1) // 2)
    mask = (1 << half) - 1
    value = place
    while True:
        left, right = value >> half, value & mask
        for round_number in range(4):
            mixed = derive("feistel", key, round_number, right) & mask
            left, right = right, left ^ mixed
        value = left << half | right
        if value < size:
            return value
