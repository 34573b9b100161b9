"""`Validator`, which keeps its two pools warm for many files, and `validate` for one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter
from typing import Literal

from spade_runtime.errors import UsageError
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.spec import (
    BLIND_WIN_LIMIT,
    GateRecord,
    IsolationLevel,
    Limits,
    Profile,
    ValidationReport,
)
from spade_runtime.validation import static
from spade_runtime.validation.bench import Bench, Options, Room
from spade_runtime.validation.files import SourceFile, read_source, sibling_hint
from spade_runtime.validation.judge import Judge
from spade_runtime.validation.pipeline import run_gates
from spade_runtime.validation.report import Findings, Identity, assemble, status_of
from spade_runtime.validation.seeds import SeedStream
from spade_runtime.validation.twins import Print, TwinIndex, fingerprint, twin_message

HASH_SEEDS: dict[Room, int] = {"main": 0, "replay": 1_592_653_589}
"""Hash seeds of the two rooms; training runs under the first."""
REPLAY_START = 2_718_281.5
"""By how many seconds the replay room's clocks are ahead."""
MEMORY_SOURCE = "<source>"
"""What a report calls a source that was given as text."""


class Validator:
    """Validates many files with two warm pools. A context manager.

    Args:
        pool: the pool of the main room; one is made, and closed at the end, where none is given.
        replay_pool: the pool of the replay room, with another hash seed and start time.
        level: isolation of the pools that it makes.
        policy: `off` leaves the static policy and its guards out.
        limits: limits of every file.
        judge: asks a model about the criteria of tool-use environments.

    Raises:
        IsolationUnavailable: the machine can't isolate at this level.

    >>> with Validator() as validator:  # doctest: +SKIP
    ...     validator.validate("crate_shuffle_env.py").verdict
    'accepted'
    """

    def __init__(
        self,
        *,
        pool: SandboxPool | None = None,
        replay_pool: SandboxPool | None = None,
        level: IsolationLevel = "strict",
        policy: Literal["on", "off"] = "on",
        limits: Limits | None = None,
        judge: Judge | None = None,
    ) -> None:
        self.limits = limits or (pool.limits if pool else Limits())
        self.judge = judge
        self._made: list[SandboxPool] = []
        try:
            self._pools: dict[Room, SandboxPool] = {
                "main": pool or self._make("main", level, policy),
                "replay": replay_pool or self._make("replay", level, policy),
            }
        except BaseException:
            self.close()
            raise

    def _make(self, room: Room, level: IsolationLevel, policy: Literal["on", "off"]) -> SandboxPool:
        made = SandboxPool(
            level=level,
            policy=policy,
            limits=self.limits,
            hash_seed=HASH_SEEDS[room],
            start_time=REPLAY_START if room == "replay" else None,
        )
        self._made.append(made)
        return made

    @property
    def isolation(self) -> str:
        """The isolation in force, as reports record it."""
        return self._pools["main"].isolation

    def validate(
        self,
        source: str | bytes | Path,
        *,
        profile: Profile = "standard",
        hint: str | None = None,
        neighbours: Iterable[str | Path] | TwinIndex = (),
        blind_win_limit: float = BLIND_WIN_LIMIT,
        path: str | None = None,
    ) -> ValidationReport:
        """Validate one source.

        Args:
            source: a path, or the text of a source (which holds a line break), or its bytes.
            profile: `lenient`, `standard` or `strict`.
            hint: the hint that goes with it; beside a file, `<stem>.hint.txt` is read.
            neighbours: environments to compare with, as paths, texts or an index.
            blind_win_limit: the share of wins that a blind policy may not exceed.
            path: what the report calls it.

        Raises:
            UsageError: the path can't be read.
            HostError: the machine, not the environment, is at fault: there is no verdict.
        """
        report, twin_print = self.examine(
            source, profile=profile, hint=hint, blind_win_limit=blind_win_limit, path=path
        )
        twins = neighbours if isinstance(neighbours, TwinIndex) else index_of(neighbours)
        if twins is None or twin_print is None:
            return report
        return with_twin(report, twin_print, twins)

    def examine(
        self,
        source: str | bytes | Path,
        *,
        profile: Profile = "standard",
        hint: str | None = None,
        blind_win_limit: float = BLIND_WIN_LIMIT,
        path: str | None = None,
    ) -> tuple[ValidationReport, Print | None]:
        """Validate one source without looking at others.

        Returns:
            The report, and the source's fingerprint, None where it is no environment.

        Raises:
            UsageError: the path can't be read.
            HostError: the machine, not the environment, is at fault.
        """
        file, named, beside = _read(source, self.limits)
        options = Options(
            profile=profile,
            limits=self.limits,
            blind_win_limit=blind_win_limit,
            hint=hint if hint is not None else beside,
            judge=self.judge,
        )
        report = self._validate(file, path or named, options)
        if report.id is None or any(row.status == "failed" for row in report.gates[:4]):
            return report, None
        text = file.data.decode("utf-8-sig", errors="replace")
        return report, fingerprint(text, path or named, file.sha256)

    def _validate(self, file: SourceFile, path: str, options: Options) -> ValidationReport:
        findings = Findings(options.profile)
        started = perf_counter()
        text = static.decode(file.data, file.size, self.limits, findings)
        seconds = round(perf_counter() - started, 4)
        gates = [
            GateRecord(
                gate="file",
                status=status_of("file", findings, True),
                seconds=seconds,
                checked=f"{file.size} bytes",
            )
        ]
        identity = Identity()
        if text is not None:
            bench = Bench(text, options, findings, SeedStream(file.data), self._pools)
            try:
                gates += run_gates(bench)
                identity = bench.identity
            finally:
                bench.close()
        return assemble(
            path=path,
            sha256=file.sha256,
            identity=identity,
            findings=findings,
            gates=gates,
            isolation=self.isolation,
        )

    def close(self) -> None:
        """Close the pools that it made; may be called twice."""
        for pool in self._made:
            pool.close()

    def __enter__(self) -> Validator:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the pools that it made."""
        self.close()


def validate(
    source: str | bytes | Path,
    *,
    profile: Profile = "standard",
    pool: SandboxPool | None = None,
    replay_pool: SandboxPool | None = None,
    hint: str | None = None,
    neighbours: Iterable[str | Path] | TwinIndex = (),
    limits: Limits | None = None,
    blind_win_limit: float = BLIND_WIN_LIMIT,
) -> ValidationReport:
    """Validate one environment. For many files keep a `Validator`, whose pools stay warm.

    Args:
        source: a path, or the text of a source (which holds a line break), or its bytes.
        profile: `lenient` (gates to 4xx), `standard`, or `strict` (a solution must prove the task).
        pool: the pool to run in.
        replay_pool: a pool with another hash seed, in which everything is replayed.
        hint: the hint that goes with it.
        neighbours: environments to compare with.
        limits: limits of time, memory and size.
        blind_win_limit: the share of wins that a blind policy may not exceed.

    Returns:
        The report: `report.verdict`, `report.findings`, `report.gates`.

    Raises:
        UsageError: the path can't be read.
        HostError: the machine is at fault, or can't isolate: there is no verdict.
    """
    with Validator(pool=pool, replay_pool=replay_pool, limits=limits) as validator:
        return validator.validate(
            source,
            profile=profile,
            hint=hint,
            neighbours=neighbours,
            blind_win_limit=blind_win_limit,
        )


def with_twin(report: ValidationReport, twin_print: Print, index: TwinIndex) -> ValidationReport:
    """A report with SPD704 where the index holds a near-duplicate and the audit gate ran."""
    audited = any(row.gate == "audit" and row.status != "skipped" for row in report.gates)
    near = index.nearest(twin_print) if audited else None
    if near is None:
        return report
    findings = Findings("standard", list(report.findings))
    findings.add("SPD704", twin_message(*near), "audit")
    return report.model_copy(update={"findings": findings.ordered()})


def index_of(neighbours: Iterable[str | Path]) -> TwinIndex | None:
    """The fingerprints of other environments, given as paths or texts."""
    prints = []
    for item in neighbours:
        file, named, _ = _read(item, Limits())
        text = file.data.decode("utf-8-sig", errors="replace")
        prints.append(fingerprint(text, named, file.sha256))
    return TwinIndex(prints) if prints else None


def _read(source: str | bytes | Path, limits: Limits) -> tuple[SourceFile, str, str | None]:
    """The bytes of a source, what to call it, and the hint beside it."""
    if isinstance(source, str) and "\n" not in source and "\0" not in source:
        if not source.strip():
            raise UsageError("an empty path was given; name a file, or give its text")
        source = Path(source)
    if isinstance(source, Path):
        return read_source(source, limits.source_bytes), str(source), sibling_hint(source)
    data = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    digest = hashlib.sha256(data).hexdigest()
    return SourceFile(data[: limits.source_bytes + 1], len(data), digest), MEMORY_SOURCE, None
