"""A pool after what can happen to it: kills, full and read-only disks, files that were changed."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import spade_envs
from spade_envs.manifest import seal_of, source_hash
from spade_envs.pool import Pool
from spade_envs.pool_index import Card
from spade_runtime.errors import InvalidEnvironment, SpadeError, UsageError
from spade_runtime.spec import EnvSpec

# What the scripts below begin with; `coin` also serves the tests themselves.
TOOLS = '''
import os, resource, signal, subprocess, sys
from pathlib import Path
from spade_envs.manifest import source_hash
from spade_envs.pool import Pool
from spade_envs.pool_index import Card, insert
from spade_runtime.errors import SpadeError
from spade_runtime.spec import EnvSpec

def coin(number, name=None):
    source = f'class CoinEnv(TextEnv):\\n    """Toss coin {number}."""\\n'
    return source, EnvSpec(id=name or f"spade/Coin{number}-v0", sha256=source_hash(source),
                           kind="game", title=f"Toss coin {number}", skill="optimization")

def stock(root, count):
    pool = Pool(root, create=True)
    pool.add_many((*coin(number), None) for number in range(count))
    return pool

def tries(call):
    try:
        print(call())
    except SpadeError as error:
        print("SpadeError:", error)
'''

MOUNTS = (["unshare", "--user", "--map-root-user", "--mount"], ["unshare", "--mount"])


def coin(number: int = 0, name: str | None = None) -> tuple[str, EnvSpec]:
    source = f'class CoinEnv(TextEnv):\n    """Toss coin {number}."""\n'
    return source, EnvSpec(
        id=name or f"spade/Coin{number}-v0",
        sha256=source_hash(source),
        kind="game",
        title=f"Toss coin {number}",
        skill="optimization",
    )


def run(script: str, *words: object) -> subprocess.CompletedProcess[str]:
    order = [sys.executable, "-c", TOOLS + script, *map(str, words)]
    return subprocess.run(order, capture_output=True, text=True)


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    return Pool(tmp_path / "pool", create=True)


@pytest.fixture
def on_a_disk(tmp_path: Path) -> Callable[[str, str], str]:
    """Run a script with a small disk of its own, in a mount namespace; gives what it printed."""
    place = tmp_path / "disk"
    place.mkdir()
    probe = ["sh", "-c", 'mount -t tmpfs -o size=64k none "$0"', str(place)]
    able = [
        way
        for way in MOUNTS
        if shutil.which("unshare")
        and not subprocess.run([*way, *probe], capture_output=True).returncode
    ]
    if not able:
        pytest.skip("no file system can be mounted here")

    def play(size: str, script: str) -> str:
        mount = f'mount -t tmpfs -o size={size} none "$0" && exec "$@" "$0"'
        order = ["sh", "-c", mount, str(place), sys.executable, "-c", TOOLS + script]
        done = subprocess.run([*able[0], *order], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return play


def problems(pool: Pool) -> list[tuple[str, str]]:
    return [(problem.kind, problem.path.name) for problem in pool.verify()]


# Full disks


def test_a_repair_on_a_full_disk_loses_nothing(on_a_disk: Callable[[str, str], str]) -> None:
    said = on_a_disk(
        "1m",
        """
root = Path(sys.argv[1]) / "pool"
pool = stock(root, 60)
ballast = Path(sys.argv[1]) / "ballast"
with ballast.open("wb", buffering=0) as file:
    try:
        while file.write(bytes(4096)):
            pass
    except OSError:
        pass
os.truncate(ballast, ballast.stat().st_size - 8192)
tries(pool.repair)
print(len(pool), pool.verify())
tries(lambda: pool.add(*coin(60)))
tries(lambda: pool.add("#" * 12000, coin(61)[1].model_copy(
    update={"sha256": source_hash("#" * 12000)})))
pool.index.path.write_bytes(b"no index" * 1000)
tries(pool.repair)
print(sorted(path.name for path in root.iterdir() if len(path.name) > 2))
ballast.unlink()
print(pool.repair(), len(pool) >= 60)
print([pool.add(*coin(number)).id for number in range(60, 62)], pool.verify(), len(pool))
""",
    ).splitlines()
    full = "SpadeError: can't write to the pool"
    assert said[0].startswith(full) and "not listed in it" in said[0]
    assert said[1] == "60 []"
    assert said[3].startswith(full) and said[4].startswith(full)
    assert said[5] == "['.incoming', 'index.sqlite', 'pool.json']"
    assert said[6:] == ["[] True", "['spade/Coin60-v0', 'spade/Coin61-v0'] [] 62"]


def test_a_repair_that_may_write_no_long_file_loses_nothing(tmp_path: Path) -> None:
    done = run(
        """
pool = stock(sys.argv[1], 60)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
before = pool.index.path.read_bytes()
for damage in (before, b"no index" * 1000):
    pool.index.path.write_bytes(damage)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
    tries(pool.repair)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    print(pool.index.path.read_bytes() == damage, not list(pool.root.glob(".index*")))
print(pool.repair(), len(pool))
""",
        tmp_path / "pool",
    )
    said = done.stdout.splitlines()
    assert said[0].startswith("SpadeError: can't write to the pool") and said[1] == "True True"
    assert said[2].startswith("SpadeError: can't write to the pool") and said[3] == "True True"
    assert said[4] == "[] 60" and not done.stderr


def test_a_journal_of_a_damaged_index_is_not_played_into_the_new_one(pool: Pool) -> None:
    pool.add(*coin())
    leave_a_journal(pool)
    journal = Path(f"{pool.index.path}-journal")
    kept = journal.read_bytes()
    pool.index.path.write_bytes(b"no index" * 1000)
    journal.write_bytes(kept)
    assert pool.repair() == [] and not journal.exists()
    assert [entry.id for entry in pool.entries()] == ["spade/Coin0-v0"]


# Kills


def leave_a_journal(pool: Pool) -> None:
    """Kill a writer after it has begun to change the table in place."""
    done = run(
        """
pool = Pool(sys.argv[1])
with pool.index.writing() as base:
    base.execute("PRAGMA cache_size = 2")
    for number in range(1000, 1300):
        insert(base, coin(number)[1].model_copy(update={"manifest_sha256": "0" * 64}), None)
    os.kill(os.getpid(), signal.SIGKILL)
""",
        pool.root,
    )
    assert done.returncode == -signal.SIGKILL
    assert Path(f"{pool.index.path}-journal").stat().st_size > 512


READINGS: dict[str, Callable[[Pool], object]] = {
    "length": len,
    "entries": lambda pool: len(pool.entries()),
    "find": lambda pool: len([pool.find("spade/Coin0-v0")]),
    "ids": lambda pool: len(pool.index.ids()),
    "verify": lambda pool: 1 + len(pool.verify()),
    "add": lambda pool: len([pool.add(*coin())]),
    "repair": lambda pool: 1 + len(pool.repair()),
}


@pytest.mark.parametrize("reading", READINGS)
def test_what_a_killed_writer_left_in_the_index_is_undone_by_the_next(
    pool: Pool, reading: str
) -> None:
    pool.add(*coin())
    leave_a_journal(pool)
    assert READINGS[reading](pool) == 1
    assert not problems(pool) and len(pool) == 1


def test_a_pool_is_registered_after_a_kill(pool: Pool) -> None:
    pool.add(*coin(name="spade/CoinAfterAKill-v0"))
    leave_a_journal(pool)
    try:
        assert spade_envs.register_pool(pool.root) == ["spade/CoinAfterAKill-v0"]
    finally:
        spade_envs.unregister("spade/CoinAfterAKill-v0")


def test_an_index_whose_first_writer_was_killed_is_empty(pool: Pool) -> None:
    leave_a_journal(pool)
    assert len(pool) == 0 and not pool.entries()
    pool.add(*coin())
    assert len(pool) == 1


def test_a_reader_that_may_not_write_says_what_was_left(
    on_a_disk: Callable[[str, str], str],
) -> None:
    said = on_a_disk(
        "4m",
        """
root = Path(sys.argv[1]) / "pool"
pool = stock(root, 1)
if not os.fork():
    with pool.index.writing() as base:
        base.execute("PRAGMA cache_size = 2")
        for number in range(1000, 1300):
            insert(base, coin(number)[1].model_copy(update={"manifest_sha256": "0" * 64}), None)
        os.kill(os.getpid(), signal.SIGKILL)
os.wait()
subprocess.run(["mount", "-o", "remount,ro", sys.argv[1]], check=True)
tries(lambda: len(pool))
tries(lambda: [problem.kind for problem in pool.verify()])
subprocess.run(["mount", "-o", "remount,rw", sys.argv[1]], check=True)
tries(lambda: (pool.verify(), len(pool)))
subprocess.run(["mount", "-o", "remount,ro", sys.argv[1]], check=True)
tries(lambda: (pool.verify(), len(pool)))
tries(pool.repair)
""",
    ).splitlines()
    assert "was killed midway" in said[0] and "spade pool verify" in said[0]
    assert said[1:4] == ["['index']", "([], 1)", "([], 1)"]
    assert said[4].startswith("SpadeError: can't write to the pool")


def leave_without_row(pool: Pool, number: int, name: str) -> None:
    """Kill a writer between its files and its row."""
    done = run(
        """
def stop(frame, event, _):
    if event == "call" and frame.f_code is insert.__code__:
        os.kill(os.getpid(), signal.SIGKILL)
pool = Pool(sys.argv[1])
sys.setprofile(stop)
pool.add(*coin(int(sys.argv[2]), sys.argv[3]))
""",
        pool.root,
        number,
        name,
    )
    assert done.returncode == -signal.SIGKILL and coin(number)[1].sha256 in pool
    assert len(pool) == 0


def test_what_a_killed_writer_did_not_list_is_listed_when_it_comes_again(pool: Pool) -> None:
    leave_without_row(pool, 1, "spade/Coin-v0")
    assert problems(pool) == [("index", "index.sqlite")]
    sha256 = coin(1)[1].sha256
    assert pool.listed(sha256).id == "spade/Coin-v0"
    assert len(pool) == 1 and not problems(pool)
    before = pool.index.path.read_bytes()
    assert pool.listed(sha256).id == "spade/Coin-v0" and pool.index.path.read_bytes() == before


@pytest.mark.parametrize("again", ["add", "listed", "measure", "repair"])
def test_an_id_that_went_to_another_meanwhile_stays_there(pool: Pool, again: str) -> None:
    leave_without_row(pool, 1, "spade/Coin-v0")
    source, spec = coin(1, "spade/Coin-v0")
    assert pool.add(*coin(2, "spade/Coin-v0")).id == "spade/Coin-v0"
    calls: dict[str, Callable[[], object]] = {
        "add": lambda: pool.add(source, spec),
        "listed": lambda: pool.listed(spec.sha256),
        "measure": lambda: pool.measure(spec.sha256, Card(plays=1)),
        "repair": pool.repair,
    }
    calls[again]()
    assert not problems(pool) and len(pool) == 2
    assert pool.find("spade/Coin-v0").sha256 == coin(2)[1].sha256
    assert pool.find(f"spade/Coin.{spec.sha256[:8]}-v0").sha256 == spec.sha256
    assert pool.repair() == [] and pool.find("spade/Coin-v0").sha256 == coin(2)[1].sha256


def test_a_lost_index_gives_each_source_an_id(pool: Pool) -> None:
    leave_without_row(pool, 1, "spade/Coin-v0")
    pool.add(*coin(2, "spade/Coin-v0"))
    pool.index.path.write_bytes(b"no index" * 1000)
    assert pool.repair() == [] and len({entry.id for entry in pool.entries()}) == 2


def test_a_suffix_that_is_taken_grows(pool: Pool) -> None:
    pool.add(*coin(1, "spade/Coin-v0"))
    source, spec = coin(2, "spade/Coin-v0")
    pool.add(*coin(3, f"spade/Coin.{spec.sha256[:8]}-v0"))
    assert pool.add(source, spec).id == f"spade/Coin.{spec.sha256[:16]}-v0"


@pytest.mark.parametrize("name", [".card.json-ab_12345", "../../.pool.lock-ab_12345"])
def test_files_that_a_killed_writer_left_aside_are_cleared(pool: Pool, name: str) -> None:
    pool.add(*coin())
    left = pool.path(coin()[1].sha256) / name
    left.write_text("{")
    assert problems(pool) == [("interrupted", left.name)]
    assert pool.repair() == [] and not left.exists() and len(pool) == 1


# What verify finds


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
    for _ in range(600):
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
    (tmp_path / "file").write_text("x")
    for place, said in {
        "ring": "symbolic links",
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


def test_a_busy_index_is_not_taken_for_a_damaged_one(pool: Pool) -> None:
    pool.add(*coin())
    with pool.index.writing():
        pool.index.patience = 0
        with pytest.raises(SpadeError, match="another process holds the index"):
            pool.repair()
    assert not problems(pool) and len(pool) == 1
