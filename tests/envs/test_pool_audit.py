"""What `verify` finds in a pool, and how it takes files and names that strangers wrote."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from spade_envs.manifest import seal_of, source_hash
from spade_envs.pool import Pool
from spade_envs.pool_index import Card
from spade_runtime.errors import InvalidEnvironment, UsageError
from spade_runtime.spec import EnvSpec


def coin(number: int = 0, name: str | None = None) -> tuple[str, EnvSpec]:
    source = f'class CoinEnv(TextEnv):\n    """Toss coin {number}."""\n'
    return source, EnvSpec(
        id=name or f"spade/Coin{number}-v0",
        sha256=source_hash(source),
        kind="game",
        title=f"Toss coin {number}",
        skill="optimization",
    )


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    return Pool(tmp_path / "pool", create=True)


def problems(pool: Pool) -> list[tuple[str, str]]:
    return [(problem.kind, problem.path.name) for problem in pool.verify()]


def test_an_environment_on_another_shelf_is_named(pool: Pool) -> None:
    pool.add(*coin())
    home = pool.path(coin()[1].sha256)
    other = pool.root / ("00" if home.parent.name != "00" else "01")
    other.mkdir()
    home.rename(other / home.name)
    assert problems(pool) == [("stray", home.name), ("index", "index.sqlite")]
    assert str(home) in pool.verify()[0].message


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", "spade/Other-v7"),
        ("kind", "tool_use"),
        ("dialect", "gem"),
        ("title", "Another"),
        ("skill", "memory_recall"),
        ("max_turns", 99),
        ("profile", "strict"),
        ("verdict", "accepted"),
        ("plays", 7),
        ("win_rate", 0.99),
        ("regret", 1.5),
        ("regret_se", 0.1),
    ],
)
def test_a_changed_row_is_named_and_mended(pool: Pool, column: str, value: object) -> None:
    pool.add(*coin(), card=Card(plays=10, win_rate=0.3, regret=0.1, regret_se=0.01))
    before = pool.entries()
    base = sqlite3.connect(pool.index.path)
    base.execute(f"UPDATE environments SET {column} = ?", [value])
    base.commit()
    base.close()
    assert [problem.message for problem in pool.verify()] == [
        f"lists another {column} of {coin()[1].sha256}"
    ]
    assert pool.repair() == [] and pool.entries() == before


def test_a_card_that_is_none_is_named_and_the_environment_stays(pool: Pool) -> None:
    pool.add(*coin())
    pool.lock()
    (pool.path(coin()[1].sha256) / "card.json").write_text('{"win_rate": 7}')
    assert problems(pool) == [("tampered", "card.json")]
    assert "win_rate" in pool.verify()[0].message
    pool.repair()
    assert len(pool) == 1
    pool.measure(coin()[1].sha256, Card(plays=1))
    assert not problems(pool)


@pytest.mark.parametrize("place", ["{home}/evil.py", "{home}/.hidden", "{shelf}/letter.txt"])
def test_a_stray_file_is_named_and_the_environment_stays(pool: Pool, place: str) -> None:
    pool.add(*coin())
    pool.lock()
    home = pool.path(coin()[1].sha256)
    stray = Path(place.format(home=home, shelf=home.parent))
    stray.write_text("x")
    assert problems(pool) == [("stray", stray.name)]
    pool.repair()
    assert len(pool) == 1 and stray.exists()


@pytest.mark.parametrize("name", ["../../x", "spade/../x-v0", "spade/Coin", "spade/Co in-v0"])
def test_an_id_that_is_none_is_refused(pool: Pool, name: str) -> None:
    source, spec = coin()
    with pytest.raises(InvalidEnvironment, match="not formed like"):
        pool.add(source, spec.model_copy(update={"id": name}))
    pool.add(source, spec)
    manifest = pool.path(spec.sha256) / "env.json"
    body = json.loads(manifest.read_text()) | {"id": name}
    manifest.write_text(json.dumps(body | {"manifest_sha256": seal_of(body)}))
    with pytest.raises(InvalidEnvironment, match="not formed like"):
        pool.spec(spec.sha256)
    assert problems(pool) == [("tampered", "env.json")]


# What strangers write

DEEP = "[" * 100_000


@pytest.mark.parametrize("name", ["env.json", "card.json"])
@pytest.mark.parametrize(
    "text", [DEEP, '{"contract_version": 1, "tools": ' + "[" * 800 + "]" * 800]
)
def test_a_file_that_is_nested_too_deeply_is_named(pool: Pool, name: str, text: str) -> None:
    pool.add(*coin())
    (pool.path(coin()[1].sha256) / name).write_text(text)
    assert [found for _, found in problems(pool)] == [name]
    if name == "env.json":
        with pytest.raises(InvalidEnvironment, match="not JSON"):
            pool.spec(coin()[1].sha256)


def test_a_schema_that_is_nested_too_deeply_is_named(pool: Pool) -> None:
    source, spec = coin()
    pool.add(source, spec)
    manifest = pool.path(spec.sha256) / "env.json"
    nested: object = 1
    for _ in range(300):
        nested = [nested]
    tool = {"name": "look", "description": "Look.", "parameters": {"deep": nested}}
    body = json.loads(manifest.read_text()) | {"tools": [tool]}
    manifest.write_text(json.dumps(body))
    with pytest.raises(InvalidEnvironment):
        pool.spec(spec.sha256)
    assert problems(pool) == [("tampered", "env.json")]


def test_a_marker_and_a_lock_that_are_nested_too_deeply_are_named(pool: Pool) -> None:
    (pool.root / "pool.lock").write_text(DEEP)
    assert problems(pool) == [("torn", "pool.lock")]
    (pool.root / "pool.json").write_text(DEEP)
    with pytest.raises(UsageError, match=r"pool\.json is damaged"):
        Pool(pool.root)


@pytest.mark.parametrize("name", ["env.py", "env.json", "card.json", "pool.lock"])
def test_a_file_without_end_is_named_and_not_read(pool: Pool, name: str) -> None:
    pool.add(*coin())
    home = pool.root if name == "pool.lock" else pool.path(coin()[1].sha256)
    with (home / name).open("ab") as file:
        file.truncate(2**36)  # takes no room, but no memory would hold it
    assert [found for _, found in problems(pool)] == [name]
    with pytest.raises(InvalidEnvironment, match="16777216"):
        pool.add("#" * (2**24 + 1), coin()[1].model_copy(update={"sha256": "0" * 64}))


def test_places_that_can_be_no_pool_are_named(tmp_path: Path) -> None:
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    for place, said in {
        "ring": "symbolic links",
        "link": "a link to something that is not there",
        "file": "is a file; a pool is a directory",
        "file/below": "Not a directory",
        "x" * 300: "name too long",
        "a\0b": "null",
        "\udcff" * 300: "name too long",
    }.items():
        for create in (False, True):
            with pytest.raises(UsageError, match=said):
                Pool(tmp_path / place, create=create)


@pytest.mark.parametrize("name", ["\udcff", "a" * 10**6, "../../etc", "", "0" * 300, "ab\0"])
def test_names_of_nothing_are_refused_cleanly(pool: Pool, name: str) -> None:
    pool.add(*coin())
    assert name not in pool and pool.card(name) is None
    for call in (pool.source, pool.spec, pool.listed):
        with pytest.raises(InvalidEnvironment, match="no hash of a source"):
            call(name)
    with pytest.raises(UsageError, match="has no environment") as told:
        pool.find(name)
    assert len(str(told.value)) < 1000
