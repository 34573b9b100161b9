"""Validates many files, here or in several processes, and gives the outcomes in order."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Literal

from spade_runtime.errors import HostError, SpadeError
from spade_runtime.spec import IsolationLevel, Limits, Profile, ValidationReport
from spade_runtime.validation.files import Target, sibling_hint
from spade_runtime.validation.judge import JudgeSettings
from spade_runtime.validation.twins import Print, TwinIndex
from spade_runtime.validation.validator import Validator, with_twin

_AHEAD = 4
"""Files that a process is given before the first of them came back."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What every file of a batch is validated with.

    Attributes:
        profile: `lenient`, `standard` or `strict`.
        policy: `off` leaves the static policy out.
        level: isolation of the pools.
        limits: limits of every file.
        hint: one hint for all files, in place of those beside them.
        judge: where the judge is, if one is configured.
    """

    profile: Profile = "standard"
    policy: Literal["on", "off"] = "on"
    level: IsolationLevel = "strict"
    limits: Limits | None = None
    hint: str | None = None
    judge: JudgeSettings | None = None

    def validator(self) -> Validator:
        """A validator with these settings."""
        judge = self.judge.judge() if self.judge else None
        return Validator(level=self.level, policy=self.policy, limits=self.limits, judge=judge)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file.

    Attributes:
        target: the file.
        report: the report, None where there is no verdict.
        error: why there is none.
        exit_code: the exit code of that error.
        twin_print: the source's fingerprint, where it is an environment.
    """

    target: Target
    report: ValidationReport | None
    error: str = ""
    exit_code: int = 0
    twin_print: Print | None = None


def run_batch(
    targets: Sequence[Target], settings: Settings, *, jobs: int = 1, twins: TwinIndex | None = None
) -> Iterator[Outcome]:
    """Validate files and give each outcome as soon as those before it are there.

    Args:
        targets: the files, in the order of the outcomes.
        settings: what they are validated with.
        jobs: processes that work at once.
        twins: environments to compare with (SPD704); each file joins them after its turn.

    Raises:
        HostError: the machine can't run the sandbox at all.
    """
    index = twins or TwinIndex()
    jobs = max(1, min(jobs, len(targets)))
    outcomes = _here(targets, settings) if jobs == 1 else _spread(targets, settings, jobs)
    for outcome in outcomes:
        if outcome.report is None or outcome.twin_print is None:
            yield outcome
            continue
        report = with_twin(outcome.report, outcome.twin_print, index)
        index.add(outcome.twin_print)
        yield Outcome(outcome.target, report)


def _one(validator: Validator, target: Target, settings: Settings) -> Outcome:
    try:
        hint = settings.hint if settings.hint is not None else sibling_hint(target.file)
        report, twin_print = validator.examine(
            target.file, profile=settings.profile, hint=hint, path=target.path
        )
        return Outcome(target, report, twin_print=twin_print)
    except SpadeError as error:
        return Outcome(target, None, str(error), error.exit_code)


def _here(targets: Sequence[Target], settings: Settings) -> Iterator[Outcome]:
    with settings.validator() as validator:
        for target in targets:
            yield _one(validator, target, settings)


def _serve(connection: Connection, settings: Settings) -> None:
    """A worker process: files in, outcomes out, until the parent closes its end."""
    # The parent decides what an interrupt means.
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, signal.SIG_IGN)
    try:
        with settings.validator() as validator:
            while True:
                number, target = connection.recv()
                connection.send((number, _one(validator, target, settings)))
    except (EOFError, ConnectionError):
        # The parent has gone, perhaps while a file was being looked at: nobody waits for it.
        return
    except SpadeError as error:
        connection.send((-1, Outcome(Target("", Path()), None, str(error), error.exit_code)))


def _spread(targets: Sequence[Target], settings: Settings, jobs: int) -> Iterator[Outcome]:
    context = multiprocessing.get_context("spawn")
    workers: dict[Connection, BaseProcess] = {}
    try:
        for _ in range(jobs):
            ours, theirs = context.Pipe()
            process: BaseProcess = context.Process(
                target=_serve, args=(theirs, settings), daemon=True
            )
            process.start()
            theirs.close()
            workers[ours] = process
        yield from _collect(targets, workers)
    finally:
        for connection, process in workers.items():
            connection.close()
            process.join(timeout=5)
            if process.is_alive():
                process.kill()


def _collect(
    targets: Sequence[Target], workers: dict[Connection, BaseProcess]
) -> Iterator[Outcome]:
    """Hand files to whoever is free, and give the outcomes back in order."""
    left = iter(enumerate(targets))
    held: dict[int, Outcome] = {}
    due = 0
    for connection in workers:
        for _ in range(_AHEAD):
            if (job := next(left, None)) is not None:
                connection.send(job)
    while due < len(targets):
        for ready in wait(list(workers)):
            assert isinstance(ready, Connection)
            try:
                number, outcome = ready.recv()
            except EOFError:
                raise HostError(
                    "a worker process ended unexpectedly, as the kernel does when memory runs "
                    "out; try again with fewer --jobs"
                ) from None
            if number < 0:
                raise HostError(outcome.error)
            held[number] = outcome
            if (job := next(left, None)) is not None:
                ready.send(job)
        while due in held:
            yield held.pop(due)
            due += 1
