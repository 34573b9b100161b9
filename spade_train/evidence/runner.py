"""Brings the planned runs to their end, each in a process of its own, some side by side.

A run that was stopped or killed goes on from its newest checkpoint.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spade_runtime.errors import SpadeError
from spade_train.errors import RunLocked
from spade_train.evidence.arms import Planned
from spade_train.evidence.stamps import Attempt, Stamp, State, changes, code_hash, stamp_of
from spade_train.run_folder import RunFolder, writing
from spade_train.running import STOPPED

# First of all the kernel is asked for a SIGINT when the runner dies (PR_SET_PDEATHSIG is 1): a run
# then leaves at its step's end, and the next runner finds it free.
_SPADE = (
    "import ctypes, signal, sys; ctypes.CDLL(None).prctl(1, signal.SIGINT); "
    "from spade_runtime.cli import main; sys.exit(main(sys.argv[1:]))"
)
_POLL_SECONDS = 0.5
# The second where the signal came before the program was there to take it.
_STOPPED = (STOPPED, -signal.SIGINT)
_SHOWN_LINES = 8

Tell = Callable[[str], None]


@dataclass(slots=True)
class _Job:
    planned: Planned
    stamp: Stamp
    process: subprocess.Popen[bytes]
    began: float
    resumed: bool


def run_all(
    planned: Sequence[Planned],
    states: dict[str, tuple[State, str]],
    now: dict[str, Stamp],
    *,
    jobs: int = 1,
    tell: Tell = lambda _: None,
) -> bool:
    """Bring every planned run to its end; finished ones are left alone.

    Args:
        planned: in the order in which they begin.
        states: of each run by name; a stale one is deleted and done again.
        now: the stamp that each run would get now, by name.
        jobs: runs side by side.
        tell: told how it gets on.

    Returns:
        Whether all are finished; False where it was asked to stop (Ctrl-C).

    Raises:
        SpadeError: a run ended with an error.
    """
    waiting = [p for p in planned if states[p.name][0] != "finished"]
    done, code = len(planned) - len(waiting), code_hash()
    if done:
        tell(f"{done} of {len(planned)} runs are finished already")
    running: list[_Job] = []
    stopping = False
    try:
        while (waiting and not stopping) or running:
            try:
                while waiting and not stopping and len(running) < jobs:
                    first = waiting.pop(0)
                    job = _start(first, states[first.name][0], now[first.name], tell)
                    running.append(job)
                    tell(f"{first.name}: {'goes on' if job.resumed else 'begins'}")
                time.sleep(_POLL_SECONDS)
            except KeyboardInterrupt:
                stopping = True
                tell("stopping at the end of each run's step; once more stops at once")
                _interrupt(running)
            for job in list(running):
                status = _ended(job, code)
                if status is None:
                    continue
                running.remove(job)
                if status in _STOPPED:
                    stopping = True
                elif status:
                    raise SpadeError(_failure(job.planned, status))
                else:
                    done += 1
                    tell(f"{job.planned.name} is finished ({done} of {len(planned)})")
    finally:
        _interrupt(running)
        for job in running:
            _wait(job, code)
    return not stopping


def _interrupt(jobs: Sequence[_Job]) -> None:
    for job in jobs:
        job.process.send_signal(signal.SIGINT)


def _start(planned: Planned, state: State, now: Stamp, tell: Tell) -> _Job:
    """Begin a run or go on with it; what was begun under other conditions is deleted first.

    Raises:
        SpadeError: what runs are made with has changed since the runner began.
    """
    if changed := changes(stamp_of(planned.config), now):
        raise SpadeError(
            f"the {' and the '.join(changed)} changed while the runs were under way; give the same "
            f"command again: it says which runs can't stand beside the others"
        )
    if state == "stale":
        shutil.rmtree(planned.folder)
        planned.stamp.unlink(missing_ok=True)
    elif planned.folder.exists():
        _wait_for_leave(planned.folder, tell)
        if not any((planned.folder / "checkpoints").glob("step-*")):
            shutil.rmtree(planned.folder)
    resumes = planned.folder.exists() and any(planned.folder.iterdir())
    if resumes:
        # The folder may have been moved since; the run goes on where it lies now.
        words = ["resume", str(planned.folder)]
    else:
        words = ["train", "--config", str(_written(planned))]
    stamp = (Stamp.read(planned.stamp) if resumes else None) or now
    stamp.write(planned.stamp)
    with planned.log.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", _SPADE, *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # A terminal's Ctrl-C is for the runner alone, which then stops each run once.
            start_new_session=True,
        )
    return _Job(planned, stamp, process, time.monotonic(), resumes)


def _written(planned: Planned) -> Path:
    """Write a run's whole configuration: a preset that changes meanwhile changes no run."""
    path = planned.folder.with_suffix(".yaml")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(planned.config.to_yaml(), encoding="utf-8")
    return path


def _wait_for_leave(folder: Path, tell: Tell) -> None:
    """Wait for the process of a killed runner, which leaves at its step's end."""
    told = False
    while True:
        try:
            with RunFolder(folder).locked():
                return
        except RunLocked as error:
            if not told:
                tell(f"waiting: {error}")
            told = True
            time.sleep(_POLL_SECONDS)


def _ended(job: _Job, code: str) -> int | None:
    """Return a run's exit code once it has one, with what it cost written down."""
    process, status, usage = os.wait4(job.process.pid, os.WNOHANG)
    if process == 0:
        return None
    return _note(job, code, status, usage.ru_utime + usage.ru_stime)


def _wait(job: _Job, code: str) -> None:
    _, status, usage = os.wait4(job.process.pid, 0)
    _note(job, code, status, usage.ru_utime + usage.ru_stime)


def _note(job: _Job, code: str, status: int, cpu_seconds: float) -> int:
    exit_code = os.waitstatus_to_exitcode(status)
    job.process.returncode = exit_code
    seconds = round(time.monotonic() - job.began, 2)
    job.stamp.attempts.append(Attempt(code, seconds, round(cpu_seconds, 2), exit_code))
    job.stamp.write(job.planned.stamp)
    return exit_code


def _failure(planned: Planned, status: int) -> str:
    lines = planned.log.read_text(encoding="utf-8", errors="replace").splitlines()
    said = "\n  ".join(lines[-_SHOWN_LINES:])
    ended = f"was killed by signal {-status}" if status < 0 else f"ended with exit code {status}"
    return (
        f"{planned.name} {ended}; its last lines ({planned.log}):\n  {said}\n"
        f"mend the cause, then the same command goes on with it"
    )
