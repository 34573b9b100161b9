"""The folder of a run: its files, its lock, and what a resume cuts off.

    config.yaml  metrics.jsonl  designs.jsonl  pool/  checkpoints/
    episodes/step-000012.jsonl  episodes/heldout-000020.jsonl

A checkpoint records how long the two logs were. What was written after it is cut off on resume,
so that no step stands twice; a measurement that is made again writes the same file again.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spade_runtime.errors import SpadeError, UsageError
from spade_train.config import RunConfig
from spade_train.errors import RunLocked

LOGS = ("metrics.jsonl", "designs.jsonl")
_EPISODES = re.compile(r"(?:step|heldout)-(?P<step>\d{6,})\.(?P<form>jsonl|partial)")
_SECRET = re.compile(r"\b(?:sk|key|hf|ghp|xoxb)[-_][A-Za-z0-9_\-]{16,}")


class RunFolder:
    """Paths and writing of one run.

    Args:
        path: of the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_path = path / "config.yaml"
        self.metrics = path / "metrics.jsonl"
        self.designs = path / "designs.jsonl"
        self.episodes = path / "episodes"
        self.pool = path / "pool"
        self.checkpoints = path / "checkpoints"
        self.report = path / "report.html"

    @classmethod
    def create(cls, path: Path, config: RunConfig) -> RunFolder:
        """Make the folder of a new run.

        Raises:
            UsageError: something is there already, or the folder can't be made.
        """
        cls.refuse_taken(path)
        folder = cls(path)
        ours = False
        try:
            path.mkdir(parents=True, exist_ok=True)
            # Of several processes that begin here at once, the one that makes this file has it.
            with folder.config_path.open("x", encoding="utf-8") as file:
                ours = True
                file.write(config.to_yaml())
            for part in (folder.episodes, folder.checkpoints):
                part.mkdir(exist_ok=True)
            for log in LOGS:
                (path / log).touch()
        except OSError as error:
            if isinstance(error, FileExistsError) and not ours:
                raise UsageError(
                    f"another process has just begun in {path}; name another folder"
                ) from error
            if ours:
                shutil.rmtree(path, ignore_errors=True)
            with suppress(OSError):  # an empty one
                path.rmdir()
            raise UsageError(
                f"the run folder {path} can't be made: {error.strerror or error}; free space, "
                f"permit it, or name another folder"
            ) from error
        return folder

    @classmethod
    def refuse_taken(cls, path: Path, *, designs: bool = False) -> None:
        """Refuse a path where something is already; an empty folder will do.

        Args:
            path: where a folder is to be made.
            designs: whether `spade design` makes it, which has nothing that could be gone on with.

        Raises:
            UsageError: something is there, or nobody can tell.
        """
        other = "name another folder by " + ("--out FOLDER" if designs else "run_dir=FOLDER")
        try:
            taken = path.exists() and not (path.is_dir() and not any(path.iterdir()))
            run = taken and any((path / "checkpoints").glob("step-*"))
        except OSError as error:
            raise UsageError(
                f"the run folder {path} can't be looked into: {error.strerror or error}; permit "
                f"it, or {other}"
            ) from error
        if run and not designs:
            raise UsageError(
                f"{path} exists already; go on with it by `spade resume {path}`, or {other}"
            )
        if taken:
            what = "" if designs else " and is no run to go on with"
            raise UsageError(f"{path} exists already{what}; {other}")

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open the folder of a run that was begun.

        Raises:
            UsageError: there is no run.
        """
        folder = cls(path)
        if not folder.config_path.is_file():
            raise UsageError(
                f"{path} is not a run: it has no config.yaml; begin one with `spade train`"
            )
        return folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for this process; the lock goes with the process.

        Raises:
            RunLocked: another process has it.
        """
        with (self.path / "run.lock").open("a+", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                lock.seek(0)
                holder = lock.read().strip() or "unknown"
                raise RunLocked(
                    f"another process (pid {holder}) works in {self.path}; wait for it or stop it"
                ) from error
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield

    def append(self, log: Path, lines: Iterable[Mapping[str, Any]]) -> None:
        """Append JSON lines to a log."""
        text = "".join(_line(line) for line in lines)
        with writing(log), log.open("a", encoding="utf-8") as file:
            file.write(text)

    def write_episodes(
        self, step: int, episodes: Iterable[Mapping[str, Any]], prefix: str = "step"
    ) -> Path:
        """Write the episodes of a step, replacing what a broken try left."""
        path = self.episodes / f"{prefix}-{step:06d}.jsonl"
        aside = path.with_suffix(".partial")
        with writing(path):
            with aside.open("w", encoding="utf-8") as file:
                file.writelines(_line(episode) for episode in episodes)
            aside.replace(path)
        return path

    def rescue_designs(self, step: int, tries: Iterable[Mapping[str, Any]]) -> Path:
        """Keep the designs of a step that did not end; it will write its own to the log."""
        path = self.path / f"rescued-designs-{step:06d}.jsonl"
        with writing(path):
            path.write_text("".join(_line(line) for line in tries), encoding="utf-8")
        return path

    def offsets(self) -> dict[str, int]:
        """Return the lengths of the logs, in bytes."""
        return {log: (self.path / log).stat().st_size for log in LOGS}

    def cut(self, offsets: Mapping[str, int], step: int) -> None:
        """Cut off what was written after a checkpoint.

        Args:
            offsets: the logs' lengths at the checkpoint.
            step: the first step that will be done again.

        Raises:
            UsageError: a log is shorter than the checkpoint says.
        """
        for log, length in offsets.items():
            path = self.path / log
            size = path.stat().st_size if path.exists() else 0
            if size < length:
                raise UsageError(
                    f"{path} has {size} bytes, but its checkpoint was made when it had {length}: "
                    f"lines were lost; restore the file, then resume"
                )
            with writing(path):
                os.truncate(path, length)
        for path in self.episodes.iterdir():
            name = _EPISODES.fullmatch(path.name)
            if name and (int(name["step"]) >= step or name["form"] == "partial"):
                path.unlink()


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system says against writing into one error for people."""
    try:
        yield
    except OSError as error:
        raise SpadeError(
            f"{path} can't be written: {error.strerror or error}; free space or permit it, then "
            f"go on with `spade resume`"
        ) from error


def _line(value: Mapping[str, Any]) -> str:
    """Return a JSON line; whatever looks like a key is blotted out."""
    return _SECRET.sub("[redacted]", json.dumps(value, ensure_ascii=False)) + "\n"
