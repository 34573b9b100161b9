"""Takes environments out of a pool: as sources, as a Hugging Face dataset, or as a package."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from spade_envs.bars import without_bars
from spade_envs.pool import Pool
from spade_envs.pool_index import Entry
from spade_envs.pool_packages import write_openenv, write_verifiers
from spade_runtime.errors import SpadeError, UsageError

Writer = Callable[[Pool, Sequence[Entry], Path], None]


def export_pool(pool: Pool, entries: Sequence[Entry], target: Path, form: str) -> int:
    """Write entries of a pool into a new directory, all of them or none.

    Args:
        pool: where they come from; every source and manifest is checked on the way.
        entries: which ones.
        target: a directory that is not there yet.
        form: `sources` (files with checksums, to be imported again), `hf` (a dataset that
            `datasets.load_from_disk` reads), `openenv` (a package that OpenEnv serves), or
            `verifiers` (a package that verifiers plays).

    Returns:
        How many were written.

    Raises:
        UsageError: the directory is there, there is nothing to export, or a package is missing.
        InvalidEnvironment: an entry was changed.
    """
    writers: dict[str, Writer] = {
        "sources": _sources,
        "hf": _dataset,
        "openenv": write_openenv,
        "verifiers": write_verifiers,
    }
    if form not in writers:
        raise UsageError(f"there is no form {form!r}; forms are {', '.join(writers)}")
    if target.exists():
        raise UsageError(f"{target} is there already; name a new directory")
    if not entries:
        raise UsageError("nothing in the pool fits, so there is nothing to export")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise SpadeError(f"can't write to {target.parent}: {error.strerror}") from error
    try:
        writers[form](pool, entries, aside)
        aside.chmod(0o755)
        aside.rename(target)
    except OSError as error:
        raise SpadeError(f"can't write {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return len(entries)


def _rows(pool: Pool, entries: Sequence[Entry]) -> Iterator[dict[str, Any]]:
    """One flat row an environment, with columns of fixed types."""
    for entry in entries:
        spec, card = pool.spec(entry.sha256), pool.card(entry.sha256)
        yield {
            "id": spec.id,
            "sha256": spec.sha256,
            "kind": spec.kind,
            "dialect": spec.dialect,
            "title": spec.title,
            "skill": spec.skill,
            "max_turns": spec.max_turns,
            "hint": spec.hint,
            "source": pool.source(entry.sha256),
            "manifest": spec.model_dump_json(),
            "plays": card.plays if card else 0,
            "win_rate": card.win_rate if card else None,
            "regret": card.regret if card else None,
            "regret_se": card.regret_se if card else None,
        }


def _sources(pool: Pool, entries: Sequence[Entry], folder: Path) -> None:
    sums = []
    for row in _rows(pool, entries):
        stem = row["id"].removeprefix("spade/").replace("/", "-")
        (folder / f"{stem}.py").write_text(row["source"], encoding="utf-8", newline="")
        (folder / f"{stem}.json").write_text(row["manifest"] + "\n", encoding="utf-8")
        if row["hint"]:
            (folder / f"{stem}.hint.txt").write_text(row["hint"] + "\n", encoding="utf-8")
        sums.append(f"{row['sha256']}  {stem}.py")
    (folder / "SHA256SUMS").write_text("\n".join(sums) + "\n", encoding="utf-8")


def _dataset(pool: Pool, entries: Sequence[Entry], folder: Path) -> None:
    try:
        datasets = import_module("datasets")
    except ModuleNotFoundError as missing:
        raise UsageError(
            "a Hugging Face dataset needs the package datasets: pip install datasets"
        ) from missing
    rows = list(_rows(pool, entries))
    types: dict[str, str] = dict.fromkeys(rows[0], "string")
    types |= {"max_turns": "int64", "plays": "int64"}
    types |= dict.fromkeys(("win_rate", "regret", "regret_se"), "float64")
    features = datasets.Features({name: datasets.Value(kind) for name, kind in types.items()})
    with without_bars():
        datasets.Dataset.from_list(rows, features=features).save_to_disk(str(folder))
