"""Which files a call means, and how they are read."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from spade_runtime.errors import UsageError
from spade_runtime.validation.files import collect, read_hint, read_source, sibling_hint

Write = Callable[[str, str], Path]


def test_folders_are_searched_in_sorted_order(tmp_path: Path, write: Write) -> None:
    for name in ("b/two.py", "a.py", "b/one.py", "b/__pycache__/x.py", ".hidden/y.py", "notes.md"):
        write(name, "x = 1\n")
    found = [target.path for target in collect([tmp_path])]
    assert found == [f"{tmp_path}{os.sep}{name}" for name in ("a.py", "b/one.py", "b/two.py")]


def test_paths_are_the_argument_joined_with_the_rest(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("envs/a.py", "")
    monkeypatch.chdir(tmp_path)
    assert [target.path for target in collect(["./envs/"])] == ["./envs/a.py"]
    assert [target.path for target in collect(["envs/a.py", "envs"])] == ["envs/a.py"]


def test_a_file_of_any_name_may_be_given(write: Write) -> None:
    notes = write("notes.txt", "hello")
    assert [target.file for target in collect([notes])] == [notes]


def test_missing_paths_and_empty_folders_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file or folder '.*nope'"):
        collect([tmp_path / "nope"])
    with pytest.raises(UsageError, match="holds no Python file"):
        collect([tmp_path])
    with pytest.raises(UsageError, match="is no path"):
        collect(["a\0b"])


def test_links_in_circles_end(tmp_path: Path, write: Write) -> None:
    write("envs/a.py", "")
    (tmp_path / "envs" / "again").symlink_to(tmp_path / "envs", target_is_directory=True)
    (tmp_path / "envs" / "self.py").symlink_to(tmp_path / "envs" / "self.py")
    targets = collect([tmp_path / "envs"])
    assert [target.file.name for target in targets] == ["a.py", "self.py"]
    with pytest.raises(UsageError, match="can't read .*self.py"):
        read_source(targets[1].file, 100)
    with pytest.raises(UsageError, match="can't look at"):
        collect([tmp_path / "envs" / "self.py"])


def test_pipes_and_devices_are_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.py"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="is no regular file"):
        read_source(pipe, 100)


def test_unreadable_files_are_errors(write: Write) -> None:
    if os.geteuid() == 0:
        pytest.skip("the super user may read every file")
    file = write("secret.py", "x = 1\n")
    file.chmod(0)
    try:
        with pytest.raises(UsageError, match="Permission denied"):
            read_source(file, 100)
    finally:
        file.chmod(stat.S_IRUSR | stat.S_IWUSR)


def test_only_the_beginning_of_a_large_file_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "large.py"
    with file.open("wb") as handle:
        handle.truncate(64 * 1024 * 1024)
    source = read_source(file, 65536)
    assert source.size == 64 * 1024 * 1024
    assert len(source.data) == 65537


def test_hints_stand_beside_their_source(write: Write) -> None:
    source = write("a.py", "x = 1\n")
    assert sibling_hint(source) is None
    write("a.hint.txt", "\ufeff Look twice.\n")
    assert sibling_hint(source) == "Look twice."


def test_bad_hints_are_errors(tmp_path: Path, write: Write) -> None:
    with pytest.raises(UsageError, match="larger than"):
        read_hint(write("long.txt", "x" * 20000))
    binary = tmp_path / "b.txt"
    binary.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_hint(binary)


def test_names_that_are_no_utf8_can_be_written(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    (tmp_path / name).write_text("x = 1\n")
    (target,) = collect([tmp_path])
    target.path.encode()
    assert read_source(target.file, 100).size == 6
