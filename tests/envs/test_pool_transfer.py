"""Environments in and out of pools: checksums, seals, and what a claim is worth."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from spade_envs import suite
from spade_envs.pool import Pool
from spade_envs.pool_export import export_pool
from spade_envs.pool_import import Importer, read_checksums
from spade_envs.pool_index import Card, Query
from spade_runtime.errors import InvalidEnvironment, UsageError
from spade_runtime.records import Records
from spade_runtime.sandbox import SandboxPool
from spade_runtime.spec import Provenance, ValidationSummary
from spade_runtime.validation import Validator


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "published"
    (folder / "games").mkdir(parents=True)
    for name in ("StampDrawerEnv", "MosaicGapEnv"):
        path = suite.paths()[name]
        (folder / "games" / path.name).write_bytes(path.read_bytes())
    return folder


def sums(folder: Path) -> str:
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n"
        for path in sorted(folder.rglob("*.py"))
    )


def test_checksums_are_held_to(sandbox: SandboxPool, folder: Path, tmp_path: Path) -> None:
    (folder / "SHA256SUMS").write_text(sums(folder))
    (folder / "games" / "stamp_drawer.py").write_text("# changed\n")
    pool = Pool(tmp_path / "pool", create=True)
    got = {one.path.name: one for one in Importer(pool, sandbox).folder(folder)}
    assert got["mosaic_gap.py"].status == "added"
    assert got["stamp_drawer.py"].status == "tampered"
    assert "its hash is" in got["stamp_drawer.py"].message
    assert len(pool) == 1


def test_checksums_that_can_not_be_read_are_named(folder: Path) -> None:
    (folder / "SHA256SUMS").write_text("no checksum\n")
    with pytest.raises(UsageError, match="SHA256SUMS, line 1"):
        read_checksums(folder)
    (folder / "SHA256SUMS").unlink()
    (folder / "checksums.json").write_text("[]")
    with pytest.raises(UsageError, match="no JSON object"):
        read_checksums(folder)


def test_an_interrupted_import_is_gone_on_with(
    sandbox: SandboxPool, folder: Path, tmp_path: Path
) -> None:
    pool = Pool(tmp_path / "pool", create=True)
    first = next(iter(Importer(pool, sandbox).folder(folder)))  # and the process is stopped here
    assert first.status == "added" and not pool.verify()
    assert [one.status for one in Importer(pool, sandbox).folder(folder)] == ["known", "added"]


def test_another_pool_keeps_hint_and_provenance_but_not_its_verdict(
    sandbox: SandboxPool, tmp_path: Path
) -> None:
    source = suite.paths()["StampDrawerEnv"].read_text()
    with sandbox.open(source) as session:
        claim = ValidationSummary(profile="strict", verdict="accepted", runtime_version="0.1.0")
        spec = session.spec.model_copy(
            update={
                "hint": "Count with the dearest stamp first.",
                "provenance": Provenance(designer="someone", step=3),
                "validation": claim,
            }
        )
    theirs = Pool(tmp_path / "theirs", create=True)
    theirs.add(source, spec, card=Card(plays=4, win_rate=0.5))
    mine = Pool(tmp_path / "mine", create=True)
    assert [one.status for one in Importer(mine, sandbox).folder(theirs.root)] == ["added"]
    kept = mine.spec(spec.sha256)
    assert kept.hint == spec.hint and kept.provenance == spec.provenance
    assert kept.validation is None and not Records().holds(spec.sha256)


def test_a_checked_import_records_the_verdict(
    sandbox: SandboxPool, validator: Validator, folder: Path, tmp_path: Path
) -> None:
    pool = Pool(tmp_path / "pool", create=True)
    records = Records(tmp_path / "verdicts.sqlite")
    importer = Importer(pool, sandbox, validator, profile="strict", records=records)
    assert [one.status for one in importer.folder(folder)] == ["added", "added"]
    for entry in pool.entries():
        assert records.holds(entry.sha256, "strict")
        assert entry.verdict == "accepted" and entry.profile == "strict"


def test_a_tampered_pool_is_not_taken_over(
    sandbox: SandboxPool, folder: Path, tmp_path: Path
) -> None:
    theirs = Pool(tmp_path / "theirs", create=True)
    list(Importer(theirs, sandbox).folder(folder))
    entry = theirs.entries()[0]
    (theirs.path(entry.sha256) / "env.py").write_text("changed")
    mine = Pool(tmp_path / "mine", create=True)
    got = [one.status for one in Importer(mine, sandbox).folder(theirs.root)]
    assert sorted(got) == ["added", "tampered"]


def test_an_export_comes_back_the_same(sandbox: SandboxPool, folder: Path, tmp_path: Path) -> None:
    pool = Pool(tmp_path / "pool", create=True)
    list(Importer(pool, sandbox).folder(folder))
    target = tmp_path / "out"
    assert export_pool(pool, pool.entries(), target, "sources") == 2
    assert len(read_checksums(target)) == 2
    again = Pool(tmp_path / "again", create=True)
    assert {one.status for one in Importer(again, sandbox).folder(target)} == {"added"}
    assert [e.sha256 for e in again.entries()] == [e.sha256 for e in pool.entries()]
    with pytest.raises(UsageError, match="is there already"):
        export_pool(pool, pool.entries(), target, "sources")
    with pytest.raises(UsageError, match="nothing in the pool fits"):
        export_pool(pool, pool.entries(Query(skill="memory_recall")), tmp_path / "x", "sources")


def test_an_export_that_fails_leaves_nothing(
    sandbox: SandboxPool, folder: Path, tmp_path: Path
) -> None:
    pool = Pool(tmp_path / "pool", create=True)
    list(Importer(pool, sandbox).folder(folder))
    (pool.path(pool.entries()[1].sha256) / "env.py").write_text("changed")
    with pytest.raises(InvalidEnvironment, match="changed or only partly written"):
        export_pool(pool, pool.entries(), tmp_path / "out", "sources")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pool", "published"]


def test_a_dataset_can_be_loaded(sandbox: SandboxPool, folder: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
    pool = Pool(tmp_path / "pool", create=True)
    list(Importer(pool, sandbox).folder(folder))
    export_pool(pool, pool.entries(), tmp_path / "hf", "hf")
    loaded = datasets.load_from_disk(str(tmp_path / "hf"))
    assert len(loaded) == 2
    assert loaded[0]["source"] == pool.source(loaded[0]["sha256"])
