"""Documents for the designer: streamed from files, drawn by seed and counter, cut by words.

A source is one of

- `builtin` or `builtin:TOPIC`: the documents that ship with the package,
- a `.jsonl` file, one object a line with `text` or `orig_doc` (and an `id` of its own),
- a `.parquet` file with such a column,
- a folder that `datasets` saved, or `hf:NAME` (`hf:NAME:SPLIT`) for a dataset of the model hub.

Nothing is held in memory but an index. A document that can't be read is reported, and the draw
goes on to the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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
# A draw gives up after this many bad documents in a row, and reports them.
MAX_SKIPS = 1000

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

    >>> cut_words("a  b c d", 2)
    'a  b'
    """
    end = 0
    for count, word in enumerate(_WORD.finditer(text), start=1):
        end = word.end()
        if count >= max_words:
            return text[:end].lstrip()
    return text.strip()


class Corpus:
    """Documents of one or more sources, as if they were one list.

    Attributes:
        max_words: length to which documents are cut.
        problems: what could not be read so far.
    """

    def __init__(self, sources: Iterable[Source], *, max_words: int) -> None:
        self._sources = list(sources)
        self.max_words = max_words
        self.problems: list[Problem] = []
        self._reported: set[str] = set()
        self._sizes = [len(source) for source in self._sources]

    @classmethod
    def open(cls, sources: Iterable[str], *, max_words: int) -> Corpus:
        """Open sources by name; see the module's text.

        Raises:
            UsageError: a source does not exist, can't be read, or all of them are empty.
        """
        names = list(sources)
        corpus = cls([_open(name) for name in names], max_words=max_words)
        if not len(corpus):
            raise UsageError(
                f"the corpus {', '.join(names) or '(none)'} holds no documents; "
                "name a JSONL file with `text` fields, or use ablation=no_corpus"
            )
        return corpus

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
        for skip in range(min(size, MAX_SKIPS)):
            document = self._read((start + skip) % size)
            if document is not None:
                return document
        raise UsageError(
            f"none of {min(size, MAX_SKIPS)} documents could be used; the first problem: "
            f"{self.problems[0].where}: {self.problems[0].why}"
        )

    def _read(self, index: int) -> Document | None:
        for source, size in zip(self._sources, self._sizes, strict=True):
            if index >= size:
                index -= size
                continue
            where = source.where(index)
            try:
                raw = source.read(index)
                return self._document(raw, source.name)
            except BadDocument as bad:
                if where not in self._reported:
                    self._reported.add(where)
                    self.problems.append(Problem(where, str(bad)))
                return None
        raise IndexError(index)

    def _document(self, raw: Raw, source: str) -> Document:
        text = cut_words(raw.text, self.max_words)
        if not text:
            raise BadDocument("the document has no words")
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
