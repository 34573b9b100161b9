"""Where documents come from: each source knows its length and reads one document at a time."""

from __future__ import annotations

import json
from array import array
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from spade_runtime.errors import UsageError

TEXT_FIELDS = ("text", "orig_doc")


class BadDocument(Exception):
    """A document can't be used; the message says why.

    Args:
        kind: what is wrong, in words that other documents with this flaw share.
        detail: what is wrong with this one.
        rest: how many of the documents after it can't be used for the same cause.
    """

    def __init__(self, kind: str, detail: str = "", *, rest: int = 0) -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind
        self.rest = rest


@dataclass(frozen=True, slots=True)
class Raw:
    """A document as it was stored."""

    id: str
    text: str


class Source(Protocol):
    """A list of documents."""

    name: str

    def __len__(self) -> int: ...

    def where(self, index: int) -> str:
        """Return where a document stands, for a person."""
        ...

    def read(self, index: int) -> Raw:
        """Read one document.

        Raises:
            BadDocument: it can't be used.
        """
        ...


def _text_of(row: dict[str, Any], default_id: str) -> Raw:
    for field in TEXT_FIELDS:
        if field in row:
            if not isinstance(row[field], str):
                raise BadDocument(f"`{field}` is {type(row[field]).__name__}, not text")
            own = row.get("id")
            return Raw(default_id if own is None else str(own), row[field])
    raise BadDocument("no field `text` or `orig_doc`", f"only {sorted(map(str, row))[:8]}")


def _need_datasets(name: str) -> None:
    if find_spec("datasets") is None:
        raise UsageError(f"reading {name} needs the library datasets; install the extra `train`")


class JsonlSource:
    """A JSONL file, read by byte offsets; blank lines don't count."""

    def __init__(self, path: Path, *, name: str = "", topic: str | None = None) -> None:
        self.path = path
        self.name = name or path.name
        self._offsets = array("q")
        self._lines = array("q")
        try:
            self._index(topic)
        except OSError as error:
            raise UsageError(f"can't read the corpus {path}: {error.strerror}") from None

    def _index(self, topic: str | None) -> None:
        marker = None if topic is None else f'"topic": "{topic}"'.encode()
        offset = 0
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip() and (marker is None or marker in line):
                    self._offsets.append(offset)
                    self._lines.append(number)
                offset += len(line)

    def __len__(self) -> int:
        return len(self._offsets)

    def where(self, index: int) -> str:
        """Return the file's name and the line."""
        return f"{self.name}:{self._lines[index]}"

    def read(self, index: int) -> Raw:
        """Read the line at an offset."""
        try:
            with self.path.open("rb") as lines:
                lines.seek(self._offsets[index])
                row = json.loads(lines.readline().decode("utf-8-sig"))
        except OSError as error:
            raise BadDocument("can't be read", str(error.strerror)) from None
        except UnicodeDecodeError as error:
            raise BadDocument("not UTF-8", f"at byte {error.start} of the line") from None
        except (ValueError, RecursionError) as error:
            raise BadDocument("no JSON", str(error)) from None
        if not isinstance(row, dict):
            raise BadDocument(f"the line holds a {type(row).__name__}, not an object")
        return _text_of(row, self.where(index))


class ParquetSource:
    """A parquet file, read one row group at a time; the last group stays at hand."""

    def __init__(self, path: Path) -> None:
        try:
            from pyarrow import ArrowException
            from pyarrow.parquet import ParquetFile
        except ModuleNotFoundError as missing:
            raise UsageError(
                f"reading {path.name} needs pyarrow, which the extra `train` brings"
            ) from missing
        self.name = path.name
        try:
            self._file = ParquetFile(path)
        except (OSError, ArrowException) as error:
            raise UsageError(f"can't read the corpus {path}: {error}") from None
        columns = set(self._file.schema_arrow.names)
        self._columns = [name for name in (*TEXT_FIELDS, "id") if name in columns]
        if not columns & set(TEXT_FIELDS):
            raise UsageError(
                f"the corpus {path} has no column `text` or `orig_doc`, only {sorted(columns)[:8]}"
            )
        meta = self._file.metadata
        self._groups = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
        self._unreadable = (OSError, ArrowException, ValueError)
        self._held: tuple[int, Any] | None = None
        self._damaged: dict[int, str] = {}

    def __len__(self) -> int:
        return sum(self._groups)

    def where(self, index: int) -> str:
        """Return the file's name and the row."""
        return f"{self.name}:{index}"

    def read(self, index: int) -> Raw:
        """Read the row, and its group if it is not at hand."""
        where, row = self.where(index), index
        for group, rows in enumerate(self._groups):
            if row < rows:
                table = self._group(group, rest=rows - row - 1)
                try:
                    return _text_of(table.slice(row, 1).to_pylist()[0], where)
                except self._unreadable as error:
                    raise BadDocument("can't be read", str(error)) from None
            row -= rows
        raise IndexError(index)

    def _group(self, group: int, *, rest: int) -> Any:
        """Return a group's table; a damaged one is tried once."""
        if self._held is not None and self._held[0] == group:
            return self._held[1]
        if group not in self._damaged:
            try:
                table = self._file.read_row_group(group, columns=self._columns)
                self._held = (group, table)
                return table
            except self._unreadable as error:
                self._damaged[group] = str(error)
        why = f"row group {group}: {self._damaged[group]}"
        raise BadDocument("damaged", why, rest=rest)


class DatasetSource:
    """A dataset of the `datasets` library, memory-mapped by it."""

    def __init__(self, dataset: Any, name: str) -> None:
        self.name = name
        self._rows = dataset
        if not set(dataset.column_names) & set(TEXT_FIELDS):
            raise UsageError(
                f"the dataset {name} has no column `text` or `orig_doc`, "
                f"only {sorted(dataset.column_names)[:8]}"
            )

    @classmethod
    def folder(cls, path: Path) -> DatasetSource:
        """Open a folder that `save_to_disk` wrote."""
        _need_datasets(path.name)
        from datasets import DatasetDict, load_from_disk

        try:
            data = load_from_disk(str(path))
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} is no dataset folder: {error}") from None
        if isinstance(data, DatasetDict):
            data = data["train"] if "train" in data else next(iter(data.values()))
        return cls(data, path.name)

    @classmethod
    def hub(cls, name: str) -> DatasetSource:
        """Open `NAME` or `NAME:SPLIT` of the model hub."""
        _need_datasets(name)
        from datasets import load_dataset

        from spade_train.hub import cache_alone, unreachable

        dataset, _, split = name.partition(":")
        away = unreachable()
        try:
            with cache_alone(when=bool(away)):
                return cls(load_dataset(dataset, split=split or "train"), name)
        except (OSError, ValueError) as error:
            if away:
                raise UsageError(
                    f"the dataset {name!r} is not in the cache, and the hub can't be reached "
                    f"({away}); name a .jsonl or .parquet file, or a folder that `datasets` saved "
                    f"where there is a network"
                ) from None
            raise UsageError(f"can't load the dataset {name!r}: {error}") from None

    def __len__(self) -> int:
        return len(self._rows)

    def where(self, index: int) -> str:
        """Return the dataset's name and the row."""
        return f"{self.name}:{index}"

    def read(self, index: int) -> Raw:
        """Read one row."""
        from pyarrow import ArrowException

        try:
            row = dict(self._rows[index])
        except (OSError, ArrowException, ValueError) as error:
            raise BadDocument("can't be read", str(error)) from None
        return _text_of(row, self.where(index))
