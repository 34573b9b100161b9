"""The designer's memory of environments that were played: what was at the edge, and what was not.

Records leave in the order in which they came (first in, first out). For a prompt it offers
high-regret environments of the skill whose win rate lies inside the frontier, and as
counter-examples those that were too easy or too hard, with what made them so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from spade_runtime.spec import Kind
from spade_train.analysis.duplicates import NEAR, jaccard, normalise_source, shingles

FRONTIER = (0.15, 0.85)
TOO_EASY_ABOVE = 0.9
TOO_HARD_BELOW = 0.1
CAPACITY = 200


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """One environment that was played.

    Attributes:
        sha256: of its source.
        title: what it calls itself.
        source: its code.
        hint: its hint, None where it had none.
        kind: game or tool_use.
        skill: the skill it was designed for.
        win_rate: share of unhinted plays that solved it.
        regret: hint regret, None where it is missing.
        regret_se: standard error of the regret.
        step: the step that made it.
        parents: hashes of the exemplars in the prompt that it was written from.
    """

    sha256: str
    title: str
    source: str
    hint: str | None
    kind: Kind
    skill: str
    win_rate: float
    regret: float | None
    regret_se: float | None
    step: int
    parents: tuple[str, ...] = ()


def is_frontier(record: MemoryRecord) -> bool:
    """Say whether a record may serve as an exemplar: inside the frontier, with a regret."""
    return FRONTIER[0] <= record.win_rate <= FRONTIER[1] and record.regret is not None


def verdict(record: MemoryRecord) -> str:
    """Return in words what a record's plays say about its difficulty.

    >>> verdict(MemoryRecord("0", "t", "s", "h", "game", "x", 0.97, 0.0, 0.0, 0))
    'too easy: solved in 97 % of plays without any hint'
    """
    share = f"{100 * record.win_rate:.0f} %"
    if record.win_rate > TOO_EASY_ABOVE:
        return f"too easy: solved in {share} of plays without any hint"
    if record.win_rate < TOO_HARD_BELOW:
        if record.regret is not None and record.regret > 0.5:
            return (
                f"too hard: solved in {share} of plays, though the hint adds {record.regret:+.2f}: "
                "its rule can't be found from what the player sees"
            )
        return f"too hard: solved in {share} of plays, and the hint does not open it either"
    return f"solved in {share} of plays"


class _Entry(NamedTuple):
    """A record with what its duplicates are found by, worked out once."""

    record: MemoryRecord
    normal: str
    shingles: frozenset[tuple[str, ...]]


class Memory:
    """The last `capacity` environments, in the order in which they were added."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            raise ValueError(f"a memory holds at least one record, got capacity {capacity}")
        self.capacity = capacity
        self._entries: deque[_Entry] = deque(maxlen=capacity)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[MemoryRecord]:
        return (entry.record for entry in self._entries)

    def add(self, record: MemoryRecord) -> None:
        """Take a record in; the oldest leaves where the memory is full."""
        normal = normalise_source(record.source)
        self._entries.append(_Entry(record, normal, shingles(normal)))

    def exemplars(self, skill: str, n: int) -> list[MemoryRecord]:
        """Return up to n frontier records of the skill, highest regret first, newest among equals.

        Of several that differ in names only the first counts, so that a prompt does not teach one
        environment n times.
        """
        frontier = [e for e in self._newest(skill) if is_frontier(e.record)]
        return _distinct(sorted(frontier, key=lambda e: -(e.record.regret or 0.0)), n)

    def counterexamples(self, skill: str, n: int) -> list[MemoryRecord]:
        """Return up to n records of the skill that were too easy or too hard, newest first.

        The two kinds take turns, so that neither crowds the other out.
        """
        newest = self._newest(skill)
        easy = _distinct((e for e in newest if e.record.win_rate > TOO_EASY_ABOVE), n)
        hard = _distinct((e for e in newest if e.record.win_rate < TOO_HARD_BELOW), n)
        mixed = [r for i in range(n) for kind in (easy, hard) for r in kind[i : i + 1]]
        return mixed[:n]

    def duplicate_of(self, source: str, *, near: float = NEAR) -> MemoryRecord | None:
        """Return the newest record that is the same or nearly the same code, None if there is none.

        Args:
            source: the new code.
            near: similarity (shared runs of tokens) from which code counts as nearly the same;
                above 1 only the same normalised source counts.
        """
        normal = normalise_source(source)
        runs = shingles(normal)
        for entry in reversed(self._entries):
            if normal == entry.normal or jaccard(runs, entry.shingles) >= near:
                return entry.record
        return None

    def _newest(self, skill: str) -> list[_Entry]:
        return [entry for entry in reversed(self._entries) if entry.record.skill == skill]

    def to_state(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {"capacity": self.capacity, "records": [asdict(record) for record in self]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Memory:
        """Build the memory that `to_state` described."""
        memory = cls(state["capacity"])
        for record in state["records"]:
            memory.add(MemoryRecord(**{**record, "parents": tuple(record["parents"])}))
        return memory


def _distinct(entries: Iterable[_Entry], n: int) -> list[MemoryRecord]:
    """Return the first n records whose normalised sources differ."""
    kept: dict[str, MemoryRecord] = {}
    for entry in entries:
        if len(kept) >= n:
            break
        kept.setdefault(entry.normal, entry.record)
    return list(kept.values())
