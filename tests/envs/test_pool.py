"""The content-addressed pool: atomic, hashed, and honest about what was changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spade_envs.manifest import read_manifest, seal_of, source_hash
from spade_envs.pool import Pool
from spade_envs.pool_index import Card, Query
from spade_runtime.errors import InvalidEnvironment, SpadeError, UsageError
from spade_runtime.records import Records
from spade_runtime.spec import EnvSpec, ValidationSummary


def coin(number: int = 0, **changes: object) -> tuple[str, EnvSpec]:
    source = f'class CoinEnv(TextEnv):\n    """Toss coin {number}."""\n'
    values: dict[str, object] = {
        "id": "spade/Coin-v0",
        "sha256": source_hash(source),
        "kind": "game",
        "title": f"Toss coin {number}",
        "skill": "optimization",
    }
    return source, EnvSpec.model_validate(values | changes)


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    return Pool(tmp_path / "pool", create=True)


def kinds(pool: Pool) -> list[str]:
    return [problem.kind for problem in pool.verify()]


def test_what_was_added_comes_back_and_verifies(pool: Pool) -> None:
    source, spec = coin(hint="Call the side that you saw.")
    stored = pool.add(source, spec)
    assert pool.source(spec.sha256) == source
    assert pool.spec(spec.sha256) == stored
    assert stored.manifest_sha256 == seal_of(stored.model_dump(mode="json"))
    assert (pool.root / spec.sha256[:2] / spec.sha256 / "env.py").read_text() == source
    assert len(pool) == 1 and spec.sha256 in pool and not kinds(pool)


def test_adding_twice_changes_nothing(pool: Pool) -> None:
    source, spec = coin()
    first = pool.add(source, spec)
    again = pool.add(source, spec.model_copy(update={"hint": "another"}))
    assert again == first and len(pool) == 1


def test_a_second_source_with_the_id_gets_the_hash_as_suffix(pool: Pool) -> None:
    pool.add(*coin(1))
    source, spec = coin(2)
    assert pool.add(source, spec).id == f"spade/Coin.{spec.sha256[:8]}-v0"
    assert len(pool) == 2 and not kinds(pool)


def test_a_manifest_of_another_source_is_refused(pool: Pool) -> None:
    with pytest.raises(InvalidEnvironment, match="describes the source"):
        pool.add("other", coin()[1])
    assert len(pool) == 0


def test_queries_by_skill_kind_and_band(pool: Pool) -> None:
    for number, (skill, rate) in enumerate(
        [
            ("optimization", 0.1),
            ("optimization", 0.5),
            ("memory_recall", 0.5),
            ("memory_recall", None),
        ]
    ):
        source, spec = coin(number, skill=skill, id=f"spade/Coin{number}-v0")
        pool.add(source, spec, card=None if rate is None else Card(plays=16, win_rate=rate))
    ids = [entry.id for entry in pool.entries(Query(skill="optimization", band=(0.2, 0.8)))]
    assert ids == ["spade/Coin1-v0"]
    assert len(pool.entries(Query(band=(0.0, 1.0)))) == 3
    assert len(pool.entries(Query(kind="tool_use"))) == 0
    assert len(pool.entries(Query(limit=2))) == 2


def test_a_card_can_be_replaced_and_is_no_part_of_the_seal(pool: Pool) -> None:
    source, spec = coin()
    stored = pool.add(source, spec)
    pool.measure(spec.sha256, Card(plays=8, win_rate=0.25, regret=0.1, regret_se=0.05))
    assert pool.card(spec.sha256) == Card(plays=8, win_rate=0.25, regret=0.1, regret_se=0.05)
    assert pool.find("spade/Coin-v0").win_rate == 0.25
    assert pool.spec(spec.sha256) == stored and not kinds(pool)


def test_find_takes_an_id_or_a_hash_prefix_and_suggests(pool: Pool) -> None:
    source, spec = coin()
    pool.add(source, spec)
    assert pool.find(spec.sha256[:8]).id == pool.find("spade/Coin-v0").id == "spade/Coin-v0"
    with pytest.raises(UsageError, match=r"did you mean 'spade/Coin-v0'\?"):
        pool.find("spade/Coyn-v0")


def test_a_changed_source_is_refused_and_named(pool: Pool) -> None:
    source, spec = coin()
    pool.add(source, spec)
    (pool.path(spec.sha256) / "env.py").write_text(source + "# more\n")
    with pytest.raises(InvalidEnvironment, match="changed or only partly written"):
        pool.source(spec.sha256)
    assert kinds(pool) == ["tampered"]


def test_a_changed_manifest_is_refused_and_named(pool: Pool) -> None:
    _, spec = coin()
    pool.add(*coin())
    file = pool.path(spec.sha256) / "env.json"
    body = json.loads(file.read_text())
    file.write_text(json.dumps(body | {"skill": "memory_recall"}))
    with pytest.raises(InvalidEnvironment, match="the manifest was changed"):
        pool.spec(spec.sha256)
    assert kinds(pool) == ["tampered"]


@pytest.mark.parametrize("name", ["env.py", "env.json"])
def test_an_empty_file_is_named_as_torn(pool: Pool, name: str) -> None:
    _, spec = coin()
    pool.add(*coin())
    (pool.path(spec.sha256) / name).write_bytes(b"")
    assert kinds(pool) == ["torn"]


def test_half_a_manifest_is_named_as_torn(pool: Pool) -> None:
    _, spec = coin()
    pool.add(*coin())
    file = pool.path(spec.sha256) / "env.json"
    file.write_bytes(file.read_bytes()[:40])
    assert kinds(pool) == ["torn"]


def test_an_interrupted_addition_is_named_does_not_count_and_is_cleared(pool: Pool) -> None:
    pool.add(*coin(1))
    left = pool.root / ".incoming" / "12345678-x"
    left.mkdir(parents=True)
    (left / "env.py").write_text("class Half")
    assert kinds(pool) == ["interrupted"] and len(pool) == 1
    assert pool.repair() == [] and not left.exists()


def test_the_index_is_built_again_from_the_files(pool: Pool) -> None:
    for number in range(3):
        pool.add(*coin(number))
    before = pool.entries()
    pool.index.path.write_bytes(b"no database at all" * 100)
    with pytest.raises(SpadeError, match=r"spade pool verify --repair"):
        pool.entries()
    assert pool.repair() == []
    assert {entry.sha256 for entry in pool.entries()} == {entry.sha256 for entry in before}


def test_an_environment_that_vanished_is_named(pool: Pool) -> None:
    _, spec = coin()
    pool.add(*coin())
    shutil.rmtree(pool.path(spec.sha256))
    assert kinds(pool) == ["index"]
    assert pool.repair() == [] and len(pool) == 0


def test_the_lock_file_pins_the_pool(pool: Pool) -> None:
    pool.add(*coin(1))
    locked = json.loads(pool.lock().read_text())
    assert [row["sha256"] for row in locked["environments"]] == [coin(1)[1].sha256]
    assert kinds(pool) == []
    pool.add(*coin(2))
    assert kinds(pool) == ["lock"]


def test_a_newer_contract_is_refused(pool: Pool) -> None:
    _, spec = coin()
    pool.add(*coin())
    file = pool.path(spec.sha256) / "env.json"
    body = json.loads(file.read_text())
    file.write_text(json.dumps(body | {"contract_version": 2, "new_field": 1}))
    with pytest.raises(UsageError, match="contract 2; this program knows contract 1"):
        read_manifest(file)
    assert kinds(pool) == ["newer"]
    (pool.root / "pool.json").write_text('{"contract_version": 9}')
    with pytest.raises(UsageError, match="Upgrade it"):
        Pool(pool.root)


def test_a_missing_pool_and_a_foreign_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is nothing at"):
        Pool(tmp_path / "absent")
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="there is no pool at"):
        Pool(tmp_path)
    with pytest.raises(UsageError, match="holds other files"):
        Pool(tmp_path, create=True)


ADDER = """
import sys
from spade_envs.manifest import source_hash
from spade_envs.pool import Pool
from spade_runtime.spec import EnvSpec
pool = Pool(sys.argv[1], create=True)
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    source = f"class Coin{number}Env(TextEnv): ..."
    pool.add(source, EnvSpec(id="spade/Coin-v0", sha256=source_hash(source), kind="game",
                             title=f"Coin {number}", skill="optimization"))
"""


def test_two_processes_add_at_once(tmp_path: Path) -> None:
    root = tmp_path / "pool"
    ranges = [(0, 25), (15, 40)]  # ten sources are added by both
    workers = [
        subprocess.Popen([sys.executable, "-c", ADDER, str(root), str(low), str(high)])
        for low, high in ranges
    ]
    assert [worker.wait(timeout=120) for worker in workers] == [0, 0]
    pool = Pool(root)
    ids = [entry.id for entry in pool.entries()]
    assert len(pool) == len(set(ids)) == 40
    assert ids.count("spade/Coin-v0") == 1
    assert not kinds(pool)


def test_a_killed_adder_leaves_a_pool_that_can_be_used(tmp_path: Path) -> None:
    root = tmp_path / "pool"
    worker = subprocess.Popen([sys.executable, "-c", ADDER, str(root), "0", "5000"])
    while not (root / "index.sqlite").exists() or len(Pool(root)) < 5:
        assert worker.poll() is None
    worker.kill()
    worker.wait(timeout=60)
    pool = Pool(root)
    assert set(kinds(pool)) <= {"interrupted", "index"}
    assert pool.repair() == [] and len(pool) >= 5
    pool.add(*coin(7))


def test_an_index_that_its_first_writer_has_just_made_is_empty(pool: Pool) -> None:
    (pool.root / "index.sqlite").touch()
    assert len(pool) == 0 and not pool.entries()
    pool.add(*coin(7))
    assert len(pool) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_pool_that_can_not_be_written_says_so(pool: Pool) -> None:
    pool.root.chmod(0o555)
    try:
        with pytest.raises(SpadeError, match="can't write to the pool"):
            pool.add(*coin())
    finally:
        pool.root.chmod(0o755)


def test_a_full_disk_leaves_nothing_half_written(pool: Pool) -> None:
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from spade_envs.manifest import source_hash\n"
        "from spade_envs.pool import Pool\n"
        "from spade_runtime.errors import SpadeError\n"
        "from spade_runtime.spec import EnvSpec\n"
        "pool = Pool(sys.argv[1])\n"
        "source = '#' * 200_000\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try:\n"
        "    pool.add(source, EnvSpec(id='spade/Big-v0', sha256=source_hash(source), kind='game',\n"
        "                             title='big', skill='optimization'))\n"
        "except SpadeError as error:\n"
        "    print(error)\n"
    )
    pool.add(*coin())
    said = subprocess.run(
        [sys.executable, "-c", limited, str(pool.root)], capture_output=True, text=True, check=True
    ).stdout
    assert "can't write to the pool" in said
    assert len(pool) == 1 and not kinds(pool)


def test_a_verdict_counts_only_where_this_machine_recorded_it(tmp_path: Path) -> None:
    claim = ValidationSummary(profile="strict", verdict="accepted", runtime_version="0.1.0")
    _, spec = coin(validation=claim)
    records = Records(tmp_path / "state" / "verdicts.sqlite")
    assert not records.holds(spec.sha256)
    records.remember(spec.sha256, "standard", "accepted")
    assert records.holds(spec.sha256) and records.holds(spec.sha256, "lenient")
    assert not records.holds(spec.sha256, "strict")
    records.remember(spec.sha256, "standard", "rejected")
    assert not records.holds(spec.sha256)


def test_a_laxer_limit_makes_no_verdict_of_the_profile_and_is_told(tmp_path: Path) -> None:
    records, sha256 = Records(tmp_path / "verdicts.sqlite"), "0" * 64
    for limit in (0.4, 0.3, 0.35):
        records.remember_accepted([sha256], "standard", limit)
    assert not records.holds(sha256) and records.laxer_limit(sha256) == 0.3
    assert records.laxer_limit("1" * 64) is None
    records.remember_accepted([sha256, "1" * 64], "standard", 0.2)
    assert records.accepted([sha256, "1" * 64, "2" * 64]) == {sha256, "1" * 64}


def test_records_that_can_not_be_read_hold_nothing(tmp_path: Path) -> None:
    file = tmp_path / "verdicts.sqlite"
    file.write_text("not a database")
    assert not Records(file).holds("0" * 64) and Records(file).laxer_limit("0" * 64) is None
    with pytest.raises(SpadeError, match="set XDG_STATE_HOME"):
        Records(file).remember("0" * 64, "standard", "accepted")
