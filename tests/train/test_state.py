"""Checkpoints and run folders: whole or not there, and never mixed up."""

import json
import os
import resource
import signal

import pytest

from spade_runtime.errors import SpadeError, UsageError
from spade_train.errors import CheckpointError, RunLocked
from spade_train.presets import resolve
from spade_train.run_folder import RunFolder
from spade_train.state import KEEP, Checkpoints


def weights(folder):
    (folder / "weights.bin").write_bytes(b"w" * 1000)


@pytest.fixture
def checkpoints(tmp_path):
    root = tmp_path / "checkpoints"
    root.mkdir()
    return Checkpoints(root)


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "run", resolve("tiny"))


def test_the_newest_one_comes_back_and_old_ones_go(checkpoints):
    for step in range(5):
        checkpoints.save(step, {"step": step}, {"metrics.jsonl": step}, weights)
    assert checkpoints.steps() == [3, 4][-KEEP:]
    path, document = checkpoints.newest()
    assert path.name == "step-000004"
    assert document["state"] == {"step": 4}
    assert document["offsets"] == {"metrics.jsonl": 4}


def test_a_writer_that_fails_leaves_the_older_one_and_nothing_half(checkpoints):
    checkpoints.save(0, {"step": 0}, {}, weights)

    def failing(folder):
        weights(folder)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        checkpoints.save(1, {"step": 1}, {}, failing)
    assert [p.name for p in checkpoints.root.iterdir()] == ["step-000000"]
    assert checkpoints.newest()[1]["state"] == {"step": 0}


@pytest.mark.parametrize("file", ["weights.bin", "state.json", "checksums.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_any_damage_is_found_and_named(checkpoints, file, damage):
    checkpoints.save(3, {"step": 3}, {}, weights)
    path = checkpoints.path(3) / file
    data = path.read_bytes()
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes(data[:-5] if damage == "cut" else b"X" + data[1:])
    with pytest.raises(CheckpointError, match="is damaged") as caught:
        checkpoints.newest()
    assert file in str(caught.value) or file == "checksums.json"
    assert "delete that folder to begin anew" in str(caught.value)


def test_a_checkpoint_of_a_later_format_is_refused(checkpoints):
    import hashlib

    checkpoints.save(3, {"step": 3}, {}, weights)
    path = checkpoints.path(3)
    state = json.loads((path / "state.json").read_text())
    (path / "state.json").write_text(json.dumps({**state, "format": 9}))
    sums = json.loads((path / "checksums.json").read_text())
    sums["state.json"] = hashlib.sha256((path / "state.json").read_bytes()).hexdigest()
    (path / "checksums.json").write_text(json.dumps(sums))
    with pytest.raises(CheckpointError, match="format 9"):
        checkpoints.newest()


def test_a_folder_is_made_once(folder, tmp_path):
    with pytest.raises(UsageError, match="exists already"):
        RunFolder.create(tmp_path / "run", resolve("tiny"))
    (tmp_path / "empty").mkdir()
    RunFolder.create(tmp_path / "empty", resolve("tiny"))
    with pytest.raises(UsageError, match="is not a run"):
        RunFolder.open(tmp_path / "nothing")


def test_a_lock_keeps_others_out_until_its_holder_is_gone(folder):
    with folder.locked(), pytest.raises(RunLocked, match=f"pid {os.getpid()}"), folder.locked():
        pass
    with folder.locked():
        pass


def test_cutting_takes_off_what_came_after_the_checkpoint(folder):
    folder.append(folder.metrics, [{"step": 0}])
    folder.write_episodes(0, [{"a": 1}])
    offsets = folder.offsets()
    folder.append(folder.metrics, [{"step": 1}])
    folder.append(folder.designs, [{"step": 1}])
    folder.write_episodes(1, [{"b": 1}])
    folder.write_episodes(1, [{"c": 1}], prefix="rescued")
    folder.cut(offsets, 1)
    assert folder.metrics.read_text() == '{"step": 0}\n'
    assert folder.designs.read_text() == ""
    names = sorted(p.name for p in folder.episodes.iterdir())
    assert names == ["rescued-000001.jsonl", "step-000000.jsonl"]


def test_foreign_names_are_left_alone(checkpoints, folder):
    for step in (0, 1):
        checkpoints.save(step, {"step": step}, {}, weights)
    for name in ("step-000001.bak", "step-old", "step-2"):
        (checkpoints.root / name).mkdir()
    (checkpoints.root / "step-000009").write_text("a file")
    assert checkpoints.steps() == [0, 1]
    assert checkpoints.newest()[0].name == "step-000001"
    foreign = ["step-000001.jsonl.bak", "step-1.jsonl", "step-old.jsonl", "notes.txt"]
    for name in (*foreign, "step-000001.jsonl", "step-000000.partial", "heldout-000001.jsonl"):
        (folder.episodes / name).write_text("{}\n")
    folder.cut({}, 1)
    assert sorted(path.name for path in folder.episodes.iterdir()) == sorted(foreign)


def test_what_is_done_again_goes_and_the_rest_stays(checkpoints):
    for step in (3, 4):
        checkpoints.save(step, {"step": step}, {}, weights)
    checkpoints.drop_after(3)
    assert checkpoints.steps() == [3]


def test_of_two_that_begin_in_one_folder_the_second_leaves_it_alone(tmp_path, monkeypatch):
    """It found nothing when it looked, and the first had made all when it wrote."""
    first = RunFolder.create(tmp_path / "run", resolve("tiny", overrides=["seed=1"]))
    before = {path: path.read_bytes() for path in first.path.iterdir() if path.is_file()}
    monkeypatch.setattr(RunFolder, "refuse_taken", lambda *_, **__: None)
    with pytest.raises(UsageError, match="another process has just begun"):
        RunFolder.create(tmp_path / "run", resolve("tiny", overrides=["seed=2"]))
    assert {path: path.read_bytes() for path in first.path.iterdir() if path.is_file()} == before


def test_who_finds_a_folder_locked_does_not_remove_it(folder):
    from spade_train.running import gone_unless

    with (
        folder.locked(),
        pytest.raises(RunLocked),
        gone_unless(lambda: False, folder),
        folder.locked(),
    ):
        pass
    assert folder.config_path.is_file()
    with pytest.raises(ZeroDivisionError), gone_unless(lambda: False, folder):
        raise ZeroDivisionError
    assert not folder.path.exists()


def test_a_log_that_lost_lines_is_not_patched_over(folder):
    folder.append(folder.metrics, [{"step": 0}])
    offsets = folder.offsets()
    folder.metrics.write_text("")
    with pytest.raises(UsageError, match="lines were lost"):
        folder.cut(offsets, 1)


def test_keys_are_blotted_out_of_everything_that_is_written(folder):
    folder.append(folder.designs, [{"raw": "use sk-abcdefghijklmnop1234 please"}])
    text = folder.designs.read_text()
    assert "sk-abcdefgh" not in text
    assert "[redacted]" in text


def test_a_full_disk_is_one_clear_error(folder):
    """The limit of a file's size stands for the disk: the system refuses the write just so."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        with pytest.raises(SpadeError, match=r"metrics.jsonl can't be written.*spade resume"):
            folder.append(folder.metrics, [{"text": "x" * 5000}])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
