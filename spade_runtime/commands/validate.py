"""`spade validate PATH...`: says which environments are sound, and why the others are not."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from spade_runtime.cli import Command, add_isolation
from spade_runtime.errors import SpadeError, UsageError
from spade_runtime.records import Records
from spade_runtime.spec import Limits, ValidationReport
from spade_runtime.validation.batch import Outcome, Settings, run_batch
from spade_runtime.validation.files import Target, collect, read_hint, read_source
from spade_runtime.validation.judge import JudgeSettings
from spade_runtime.validation.output import Tally, coloured, github_lines, text_lines
from spade_runtime.validation.twins import TwinIndex, fingerprint

_FILES_A_JOB = 8
"""So many files are worth the start of one more process."""

_DESCRIPTION = """\
Validate environments: files, or folders that are searched for *.py.

Exit code: 0 when all are accepted, 1 when one is rejected, 2 for a usage error (a path that can't
be read), 3 when the sandbox can't isolate here, 130 when it was stopped by Ctrl-C or SIGTERM: what
was found until then stands. `spade explain CODE` tells what a finding means.
A hint beside a source, <stem>.hint.txt, is validated with it. What is accepted is noted in this
machine's records, and `spade show` tells it."""


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files or folders")
    parser.add_argument(
        "--profile",
        choices=("lenient", "standard", "strict"),
        default="standard",
        help="lenient: gates to 4xx; strict: a reference solution must prove the task",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "github"),
        default="text",
        help="github writes annotations for GitHub Actions",
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="processes that work at once (default: by the files)"
    )
    parser.add_argument("--hint", metavar="FILE", help="the hint to validate with a single file")
    parser.add_argument(
        "--pool", metavar="DIR", help="environments to compare with for near-duplicates"
    )
    parser.add_argument(
        "--policy", choices=("on", "off"), default="on", help="off: the sandbox alone, for tests"
    )
    add_isolation(parser)
    parser.add_argument(
        "--judge", metavar="URL", help="OpenAI-compatible server that judges tool criteria"
    )
    parser.add_argument("--judge-model", metavar="NAME", help="the judge's model")


def _run(arguments: argparse.Namespace) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    targets = collect(arguments.paths)
    settings = _settings(arguments, targets)
    jobs = _jobs(arguments.jobs, len(targets))
    twins = _pool(arguments.pool, {os.path.realpath(target.file) for target in targets})
    outcomes = run_batch(targets, settings, jobs=jobs, twins=twins)
    tally = Tally()
    shown = _noted(_counted(_progress(outcomes, len(targets)), tally), settings)
    try:
        if arguments.format == "json":
            _print_json(shown)
        else:
            _print_lines(shown, arguments.format)
            if arguments.format == "text" and len(targets) > 1:
                print("\n".join(tally.lines()))
        notes = sys.stdout if arguments.format == "text" else sys.stderr
        for note in tally.notes():
            print(note, file=notes)
    except KeyboardInterrupt:
        print(f"spade: stopped after {tally.files} of {len(targets)} files", file=sys.stderr)
        return 130
    return tally.exit_code


def _settings(arguments: argparse.Namespace, targets: Sequence[Target]) -> Settings:
    hint = None
    if arguments.hint is not None:
        if len(targets) != 1:
            raise UsageError(
                f"--hint goes with one file, and {len(targets)} were named; put <stem>.hint.txt "
                "beside each source instead"
            )
        hint = read_hint(Path(arguments.hint))
    if (arguments.judge is None) != (arguments.judge_model is None):
        raise UsageError("--judge URL and --judge-model NAME go together")
    judge = JudgeSettings(arguments.judge, arguments.judge_model) if arguments.judge else None
    if judge is not None:
        judge.judge()
    return Settings(
        profile=arguments.profile,
        policy=arguments.policy,
        level=arguments.isolation,
        hint=hint,
        judge=judge,
    )


def _jobs(wanted: int | None, files: int) -> int:
    if wanted is None:
        return max(1, min(len(os.sched_getaffinity(0)), files // _FILES_A_JOB))
    if wanted < 1:
        raise UsageError(f"--jobs is at least 1, not {wanted}")
    return min(wanted, files)


def _pool(folder: str | None, validated: set[str]) -> TwinIndex:
    """Fingerprints of a pool's environments, except of the files that are validated."""
    index = TwinIndex()
    for target in collect([folder]) if folder else []:
        if os.path.realpath(target.file) in validated:
            continue
        limit = Limits().source_bytes
        source = read_source(target.file, limit)
        if source.size <= limit:
            text = source.data.decode("utf-8-sig", errors="replace")
            index.add(fingerprint(text, target.path, source.sha256))
    return index


def _counted(outcomes: Iterable[Outcome], tally: Tally) -> Iterator[ValidationReport]:
    """The reports; what has none is told on stderr and counted."""
    for outcome in outcomes:
        if outcome.report is None:
            tally.failed(outcome.exit_code)
            print(f"spade: error: {outcome.error}", file=sys.stderr)
        else:
            tally.add(outcome.report)
            yield outcome.report


def _noted(reports: Iterable[ValidationReport], settings: Settings) -> Iterator[ValidationReport]:
    """The reports; at their end what was accepted goes into this machine's records."""
    accepted: list[str] = []
    try:
        for report in reports:
            # With the policy off a gate less was passed than the profile has.
            if report.verdict == "accepted" and report.sha256 and settings.policy == "on":
                accepted.append(report.sha256)
            yield report
    finally:
        try:
            Records().remember_accepted(accepted, settings.profile)
        except SpadeError as error:
            print(f"spade: {error}", file=sys.stderr)


def _print_lines(reports: Iterable[ValidationReport], form: str) -> None:
    colour = coloured(sys.stdout)
    for report in reports:
        lines = github_lines(report) if form == "github" else text_lines(report, colour=colour)
        for line in lines:
            print(line)


def _print_json(reports: Iterable[ValidationReport]) -> None:
    """One object, written report by report so that ten thousand of them need no memory."""
    print('{"reports": [', end="")
    try:
        for place, report in enumerate(reports):
            text = report.model_dump_json(ensure_ascii=True)
            print(",\n" + text if place else "\n" + text, end="", flush=True)
    except KeyboardInterrupt:
        print("\n]}")
        raise
    print("\n]}")


def _progress(outcomes: Iterable[Outcome], total: int) -> Iterator[Outcome]:
    """A bar with rate and time left, on a terminal and for several files only."""
    if total < 2 or not sys.stderr.isatty():
        yield from outcomes
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("validate"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]} files/s, left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("validate", total=total, rate="-")
        for outcome in outcomes:
            yield outcome
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            bar.update(task, advance=1, rate=f"{speed:.1f}" if speed else "-")


command = Command(
    name="validate",
    summary="say which environments are sound, and why the others are not",
    configure=_configure,
    run=_run,
    description=_DESCRIPTION,
)
