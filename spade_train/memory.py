"""The designer's memory of environments that were played: what was at the edge, and what was not.

Records leave in the order in which they came (first in, first out). For a prompt it offers
high-regret environments of the skill whose win rate lies inside the frontier, and as
counter-examples those that were too easy or too hard, with what made them so.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from spade_runtime.spec import Kind

FRONTIER = (0.15, 0.85)
TOO_EASY_ABOVE = 0.9
TOO_HARD_BELOW = 0.1
CAPACITY = 200
NEAR = 0.9
_SHINGLE = 5


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


class Memory:
    """The last `capacity` environments, in the order in which they were added."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            raise ValueError(f"a memory holds at least one record, got capacity {capacity}")
        self.capacity = capacity
        self._records: deque[MemoryRecord] = deque(maxlen=capacity)

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[MemoryRecord]:
        return iter(self._records)

    def add(self, record: MemoryRecord) -> None:
        """Take a record in; the oldest leaves where the memory is full."""
        self._records.append(record)

    def exemplars(self, skill: str, n: int) -> list[MemoryRecord]:
        """Return up to n frontier records of the skill, highest regret first, newest among equals.

        Of several near-duplicates only the first counts, so that a prompt does not teach one
        environment n times.
        """
        frontier = [r for r in reversed(self._records) if r.skill == skill and is_frontier(r)]
        frontier.sort(key=lambda r: -(r.regret or 0.0))
        return _distinct(frontier, n)

    def counterexamples(self, skill: str, n: int) -> list[MemoryRecord]:
        """Return up to n records of the skill that were too easy or too hard, newest first.

        The two kinds take turns, so that neither crowds the other out.
        """
        newest = [r for r in reversed(self._records) if r.skill == skill]
        easy = _distinct([r for r in newest if r.win_rate > TOO_EASY_ABOVE], n)
        hard = _distinct([r for r in newest if r.win_rate < TOO_HARD_BELOW], n)
        mixed = [r for i in range(n) for kind in (easy, hard) for r in kind[i : i + 1]]
        return mixed[:n]

    def duplicate_of(self, source: str, *, near: float = NEAR) -> MemoryRecord | None:
        """Return the newest record that is the same or nearly the same code, None if there is none.

        Args:
            source: the new code.
            near: similarity (shared shingles of five tokens) from which code counts as nearly
                the same; above 1 only the same normalised source counts.
        """
        normal = normalise_source(source)
        shingles = _shingles(normal)
        for record in reversed(self._records):
            other = normalise_source(record.source)
            if normal == other or _jaccard(shingles, _shingles(other)) >= near:
                return record
        return None

    def to_state(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {"capacity": self.capacity, "records": [asdict(r) for r in self._records]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Memory:
        """Build the memory that `to_state` described."""
        memory = cls(state["capacity"])
        for record in state["records"]:
            memory.add(MemoryRecord(**{**record, "parents": tuple(record["parents"])}))
        return memory


def normalise_source(source: str) -> str:
    r"""Return code without what does not change its play: layout, comments, docstrings, its name.

    The class's name and its `title` go too. Code that does not parse keeps its words only.

    >>> a = "class AEnv:\n    '''One.'''\n    N = 3  # three"
    >>> normalise_source(a) == normalise_source("class BEnv:\n  'Two.'\n  N = 3")
    True
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return " ".join(source.split())
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            node.name = "Env" if node.name.endswith("Env") else node.name
            node.body = [n for n in node.body if not _is_title(n)] or [ast.Pass()]
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [n for n in node.body if not _is_text(n)] or [ast.Pass()]
    return ast.unparse(tree)


def source_key(source: str) -> str:
    """Return the hash of the normalised source: equal for code that plays the same."""
    return sha256(normalise_source(source).encode()).hexdigest()


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_title(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == "title" for target in node.targets
    )


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    tokens = re.findall(r"\w+|[^\w\s]", text)
    if len(tokens) <= _SHINGLE:
        return frozenset({tuple(tokens)})
    return frozenset(tuple(tokens[i : i + _SHINGLE]) for i in range(len(tokens) - _SHINGLE + 1))


def _jaccard(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> float:
    return len(a & b) / len(a | b) if a and b else 0.0


def _distinct(records: list[MemoryRecord], n: int) -> list[MemoryRecord]:
    seen: set[str] = set()
    kept: list[MemoryRecord] = []
    for record in records:
        if len(kept) >= n:
            break
        key = source_key(record.source)
        if key not in seen:
            seen.add(key)
            kept.append(record)
    return kept
