"""What `spade run` prints of what came of it: the table, the faults, or all of it as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spade_envs.commands.common import aligned
from spade_envs.episodes import Episode
from spade_envs.manifest import with_suffix
from spade_envs.results import Interval, Summary, summarise
from spade_runtime.validation.text import visible

CODES_SHOWN = 3  # of one environment's faults


class Row(NamedTuple):
    """One environment of a run.

    Attributes:
        name: its id; with eight digits of its hash where another source of the run has the id.
        path: the file of its source.
        episodes: all that were played.
    """

    name: str
    path: Path
    episodes: Sequence[Episode]

    @property
    def summary(self) -> Summary:
        """What they came to."""
        return summarise(self.episodes)

    @property
    def faults(self) -> list[Episode]:
        """Those that the environment's own fault made void."""
        return [one for one in self.episodes if one.fault is not None]


def own_name(name: str, sha256: str, rows: Sequence[Row]) -> str:
    """A name that no row of another source has."""
    taken = any(row.name == name and row.episodes[0].sha256 != sha256 for row in rows)
    return with_suffix(name, sha256) if taken else name


def table(rows: Sequence[Row]) -> str:
    """The results for people; intervals are of 95 %."""
    heads = ("environment", "episodes", "solved", "reward", "turns", "cut off", "faults")
    cells = [
        (
            row.name,
            one.episodes,
            one.solved.text(percent=True) if one.solved else "-",
            one.reward.text() if one.reward else "-",
            f"{one.turns.value:.1f}" if one.turns else "-",
            one.truncated,
            one.faults,
        )
        for row in rows
        for one in (row.summary,)
    ]
    return aligned(cells, heads)


def fault_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Which faults an environment had, the first message of each code, and where to look."""
    for row in rows:
        if not row.faults:
            continue
        kinds = Counter(_code(one) for one in row.faults)
        of = f"{len(row.faults)} of {len(row.episodes)} episodes"
        yield f"{row.name}: {of} ended by its own fault"
        for code, count in kinds.most_common(CODES_SHOWN):
            first = next(one for one in row.faults if _code(one) == code)
            said = visible(first.fault.message if first.fault else "", 300)
            yield f"  {code} in {count}, first with seed {first.seed}: {said}"
        if len(kinds) > CODES_SHOWN:
            yield f"  and {len(kinds) - CODES_SHOWN} more codes"
        code = kinds.most_common(1)[0][0]
        explained = f", spade explain {code}" if code.startswith("SPD") else ""
        yield f"  look closer with: spade validate {row.path}{explained}"


def as_json(path: Path, rows: Sequence[Row]) -> str:
    """All of it as one JSON object."""
    return json.dumps({"episodes": str(path), "results": [_plain(row) for row in rows]})


def _plain(row: Row) -> dict[str, Any]:
    values = {
        key: value._asdict() if isinstance(value, Interval) else value
        for key, value in row.summary._asdict().items()
    }
    first = row.faults[0] if row.faults else None
    told = first.fault.model_dump() | {"seed": first.seed} if first and first.fault else None
    return {"id": row.name, "sha256": row.episodes[0].sha256, **values, "first_fault": told}


def _code(episode: Episode) -> str:
    return (episode.fault.code or episode.fault.kind) if episode.fault else ""
