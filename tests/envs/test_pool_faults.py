"""A pool after what can happen to it: kills, full and read-only disks, other writers."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import spade_envs
from spade_envs.manifest import source_hash
from spade_envs.pool import Pool
from spade_envs.pool_index import Card
from spade_runtime.errors import SpadeError
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


def test_a_busy_index_is_not_taken_for_a_damaged_one(pool: Pool) -> None:
    pool.add(*coin())
    with pool.index.writing():
        pool.index.patience = 0
        with pytest.raises(SpadeError, match="another process holds the index"):
            pool.repair()
    assert not problems(pool) and len(pool) == 1
