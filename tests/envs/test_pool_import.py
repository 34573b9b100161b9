"""What an import says of checksums that are not met, of ids that clash, of hostile folders."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spade_envs import suite
from spade_envs.manifest import source_hash
from spade_envs.pool import Pool
from spade_envs.pool_import import Importer, read_checksums
from spade_runtime.errors import UsageError
from spade_runtime.sandbox import SandboxPool

Spade = Callable[..., tuple[int, str, str]]
SOURCE = suite.paths()["StampDrawerEnv"].read_bytes()
DIGEST = hashlib.sha256(SOURCE).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "stamp.py").write_bytes(SOURCE)
    return folder


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    return Pool(tmp_path / "pool", create=True)


def statuses(sandbox: SandboxPool, pool: Pool, folder: Path) -> dict[str, str]:
    return {one.path.name: one.status for one in Importer(pool, sandbox).folder(folder)}


def test_a_file_with_a_checksum_that_is_not_there_is_named(
    sandbox: SandboxPool, pool: Pool, folder: Path
) -> None:
    (folder / "SHA256SUMS").write_text(f"{DIGEST}  stamp.py\n{DIGEST}  gone.py\n")
    (folder / "checksums.json").write_text(json.dumps({"sub/lost.py": DIGEST}))
    found = list(Importer(pool, sandbox).folder(folder))
    assert [(one.path, one.status) for one in found] == [
        (folder / "stamp.py", "added"),
        (folder / "gone.py", "missing"),
        (folder / "sub" / "lost.py", "missing"),
    ]


@pytest.mark.parametrize("name", ["./stamp.py", "sub/../stamp.py", ".//stamp.py", "stamp.py"])
@pytest.mark.parametrize("form", ["SHA256SUMS", "checksums.json"])
def test_every_way_to_write_a_path_is_held_to(
    sandbox: SandboxPool, pool: Pool, folder: Path, form: str, name: str
) -> None:
    wrong = "0" * 64
    texts = {"SHA256SUMS": f"{wrong}  {name}\n", "checksums.json": json.dumps({name: wrong})}
    (folder / form).write_text(texts[form])
    assert statuses(sandbox, pool, folder) == {"stamp.py": "tampered"}
    (folder / form).write_text(texts[form].replace(wrong, DIGEST.upper()))
    assert statuses(sandbox, pool, folder) == {"stamp.py": "added"}


def test_hints_and_other_files_are_held_to_their_checksums(
    sandbox: SandboxPool, pool: Pool, folder: Path
) -> None:
    (folder / "stamp.hint.txt").write_text("Begin with the dearest stamp.")
    (folder / "README.md").write_text("read me")
    hint, readme = (
        source_hash((folder / name).read_bytes()) for name in ("stamp.hint.txt", "README.md")
    )
    (folder / "SHA256SUMS").write_text(f"{readme}  README.md\r\n{'1' * 64}  stamp.hint.txt\r\n")
    assert statuses(sandbox, pool, folder) == {"stamp.hint.txt": "tampered"}
    (folder / "SHA256SUMS").write_text(f"{'1' * 64} *README.md\n{hint} *stamp.hint.txt\n")
    assert statuses(sandbox, pool, folder) == {"stamp.py": "added", "README.md": "tampered"}
    assert pool.spec(DIGEST).hint == "Begin with the dearest stamp."


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"../other.py": DIGEST}, "no path of a file below"),
        ({"/etc/passwd": DIGEST}, "no path of a file below"),
        ({"": DIGEST}, "no path of a file below"),
        ({"stamp.py": "abc"}, "no SHA-256"),
        ({"stamp.py": 5}, "no SHA-256"),
        ({"stamp.py": DIGEST, "./stamp.py": "0" * 64}, "another hash"),
        ("[" * 100_000, "no JSON object"),
    ],
)
def test_checksums_that_make_no_sense_are_refused(folder: Path, table: object, said: str) -> None:
    text = table if isinstance(table, str) else json.dumps(table)
    (folder / "checksums.json").write_text(text)
    with pytest.raises(UsageError, match=said):
        read_checksums(folder)


@pytest.mark.parametrize("name", ["stamp.py", "stamp.hint.txt"])
def test_a_file_without_end_is_refused_and_not_read(
    sandbox: SandboxPool, pool: Pool, folder: Path, name: str
) -> None:
    (folder / "other.py").write_bytes(SOURCE)
    with (folder / name).open("ab") as file:
        file.truncate(2**36)  # takes no room, but no memory would hold it
    assert statuses(sandbox, pool, folder) == {"other.py": "added", name: "unreadable"}


def test_an_import_that_was_killed_before_its_row_is_gone_on_with(
    sandbox: SandboxPool, pool: Pool, folder: Path
) -> None:
    script = """
import os, signal, sys
from pathlib import Path
from spade_envs.pool import Pool
from spade_envs.pool_import import Importer
from spade_envs.pool_index import insert
from spade_runtime.sandbox import SandboxPool

def stop(frame, event, _):
    if event == "call" and frame.f_code is insert.__code__:
        os.kill(os.getpid(), signal.SIGKILL)

with SandboxPool() as sandbox:
    sys.setprofile(stop)
    list(Importer(Pool(sys.argv[1]), sandbox).folder(Path(sys.argv[2])))
"""
    order = [sys.executable, "-c", script, str(pool.root), str(folder)]
    assert subprocess.run(order).returncode == -signal.SIGKILL
    assert DIGEST in pool and len(pool) == 0
    assert statuses(sandbox, pool, folder) == {"stamp.py": "known"}
    assert len(pool) == 1 and not pool.verify()


def test_a_changed_manifest_stops_no_import(sandbox: SandboxPool, pool: Pool, folder: Path) -> None:
    assert statuses(sandbox, pool, folder) == {"stamp.py": "added"}
    (pool.path(DIGEST) / "env.json").write_text("[" * 100_000)
    (folder / "zoo.py").write_bytes(suite.paths()["MosaicGapEnv"].read_bytes())
    assert statuses(sandbox, pool, folder) == {"stamp.py": "tampered", "zoo.py": "added"}


def test_another_source_with_the_id_is_told(isolation: None, spade: Spade, folder: Path) -> None:
    (folder / "stamp2.py").write_bytes(SOURCE + b"# another\n")
    code, out, _ = spade("pool", "import", "--unchecked", folder, "pool")
    second = source_hash(SOURCE + b"# another\n")[:8]
    assert code == 0 and out.splitlines() == [
        f"added as spade/StampDrawer.{second}-v0: {folder / 'stamp2.py'}: "
        "another source holds the id spade/StampDrawer-v0",
        "pool: 2 added",
    ]
    assert spade("pool", "import", "--unchecked", folder, "pool")[1] == "pool: 2 known\n"


def test_names_of_files_can_not_steer_the_terminal(
    isolation: None, spade: Spade, folder: Path
) -> None:
    (folder / "\x1b[31mred\n::error::x.py").write_bytes(SOURCE + b"\xff")
    (folder / "SHA256SUMS").write_text(f"{DIGEST}  \x1b[2Jgone.py\n")
    code, out, _ = spade("pool", "import", "--unchecked", folder, "pool")
    assert code == 1 and "\x1b" not in out and "\n::" not in out
    assert "rejected: " in out and "\\x1b[31mred\\n\\x3a:error" in out
    assert "missing: " in out and "\\x1b[2Jgone.py" in out
    Path("pool/\x1b]0;title\x07").write_text("x")
    code, out, _ = spade("pool", "verify", "pool")
    assert code == 1 and "stray: pool/\\x1b]0;title\\x07: " in out and "\x1b" not in out


def test_a_missing_file_fails_the_command(isolation: None, spade: Spade, folder: Path) -> None:
    (folder / "SHA256SUMS").write_text(f"{DIGEST}  gone.py\n")
    code, out, _ = spade("pool", "import", "--unchecked", folder, "pool")
    assert code == 1 and out.endswith("pool: 1 added, 1 missing\n")
