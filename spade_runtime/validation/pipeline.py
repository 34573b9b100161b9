"""Runs the gates of one file, from cheap to dear, and writes down how each one ended."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from spade_runtime.codes import GATES
from spade_runtime.errors import EnvFault
from spade_runtime.spec import GateRecord
from spade_runtime.validation import static
from spade_runtime.validation.audit import run_audit
from spade_runtime.validation.bench import Bench
from spade_runtime.validation.games import PlayFault
from spade_runtime.validation.judge import run_judge
from spade_runtime.validation.report import status_of
from spade_runtime.validation.resetting import run_load, run_reset
from spade_runtime.validation.solving import run_solvability
from spade_runtime.validation.stepping import run_step
from spade_runtime.validation.tooling import run_tools

_LENIENT_LAST = "step"


def _step(bench: Bench) -> str:
    return run_step(bench) if bench.kind == "game" else "tools take the place of step"


def _tools(bench: Bench) -> str:
    return run_tools(bench) if bench.kind == "tool_use" else ""


_RUNNING: dict[str, Callable[[Bench], str]] = {
    "load": run_load,
    "reset": run_reset,
    "step": _step,
    "tools": _tools,
    "solvability": run_solvability,
    "audit": run_audit,
    "judge": run_judge,
}


def run_gates(bench: Bench) -> list[GateRecord]:
    """Run the gates of a source whose file gate has passed.

    Returns:
        One record a gate, in order.
    """
    records = _static(bench)
    for gate, run in _RUNNING.items():
        if gate == "judge" and bench.options.judge is None:
            continue
        wanted = not bench.stop and _applies(bench, gate)
        started = perf_counter()
        checked = _guarded(bench, gate, run) if wanted else ""
        seconds = perf_counter() - started if wanted else 0.0
        records.append(_record(bench, gate, wanted, seconds, checked))
    return records


def _applies(bench: Bench, gate: str) -> bool:
    if gate == "tools" and bench.kind != "tool_use":
        return False
    last = GATES.index(_LENIENT_LAST)
    return bench.options.profile != "lenient" or GATES.index(gate) <= last


def _static(bench: Bench) -> list[GateRecord]:
    """The gates that read the source: one child does them all."""
    started = perf_counter()
    try:
        static.run_inspection(bench)
    except EnvFault as fault:
        _fault(bench, "syntax", fault, None, None)
    seconds = perf_counter() - started
    bench.stop = bench.findings.failed
    checked = static.checked(bench)
    records = []
    for place, gate in enumerate(static.STATIC_GATES):
        ran = bench.inspection is not None and not any(
            bench.findings.failed_in(before) and before == "syntax"
            for before in static.STATIC_GATES[:place]
        )
        records.append(
            _record(
                bench,
                gate,
                ran or gate == "syntax",
                0.0 if place else seconds,
                checked.get(gate, ""),
            )
        )
    return records


def _guarded(bench: Bench, gate: str, run: Callable[[Bench], str]) -> str:
    """Run a gate; a fault of the process is a finding, and nothing runs after it."""
    try:
        checked = run(bench)
        bench.charge()
        return checked
    except PlayFault as play:
        seed, action = play.seed, play.action
        if play.suspects:
            seed, action = bench.culprit(play.suspects) or (None, None)
        _fault(bench, gate, play.fault, seed, action)
    except EnvFault as fault:
        _fault(bench, gate, fault, None, fault.evidence.last_action)
    return "ended by a fault"


def _fault(bench: Bench, gate: str, fault: EnvFault, seed: int | None, action: str | None) -> None:
    phase = fault.evidence.phase
    where = f"in {phase}: " if phase else ""
    bench.findings.add(
        fault.code, f"{where}{fault}", gate, line=fault.evidence.line, seed=seed, action=action
    )
    bench.stop = True


def _record(bench: Bench, gate: str, ran: bool, seconds: float, checked: str) -> GateRecord:
    return GateRecord(
        gate=gate,
        status=status_of(gate, bench.findings, ran),
        seconds=round(seconds, 4),
        checked=checked,
    )
