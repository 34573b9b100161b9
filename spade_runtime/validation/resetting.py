"""The gates load and reset: does the module load, and does `reset` give sound, repeatable tasks."""

from __future__ import annotations

from spade_runtime.codes import CODES
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.wire import Bad, Raised, RawSolution
from spade_runtime.validation import sameness
from spade_runtime.validation.bench import Bench
from spade_runtime.validation.games import Start, stop_at_fault
from spade_runtime.validation.replies import raised_problem
from spade_runtime.words import an

SEEDS = 64
"""Seeds of the gates: a flaw on one seed in twenty is found with 96 %."""
_FIRST = 4
_SLOW_SECONDS, _VERY_SLOW_SECONDS = 0.02, 0.15
_SLOW_SEEDS, _VERY_SLOW_SEEDS = 24, 8
_WITHOUT_SOLUTION = 24
"""Seeds that are reset in the other room where no solution is asked for there."""


def run_load(bench: Bench) -> str:
    """Load the module."""
    child = bench.child("main")
    bench.loaded = child.load()
    if bench.loaded.raised is not None:
        bench.problem(raised_problem(bench.loaded.raised), "load")
        bench.stop = True
    return "the module was run once"


def run_reset(bench: Bench) -> str:
    """Reset on many seeds, here and, in another order, in the other room."""
    main = bench.child("main")
    bench.seeds = bench.stream.seeds("reset", SEEDS)
    starts = _measured(bench, main)
    checker = bench.table(main)
    for seed, start in zip(bench.seeds, starts, strict=True):
        bench.starts[seed] = start
        problem = checker.check_start(start)
        stop_at_fault(problem, seed, None)
        if problem is not None:
            home = CODES[problem.code].gate
            bench.problem(problem, home if home in ("load", "tools") else "reset", seed=seed)
            bench.stop = True
    if not bench.stop:
        _other_room(bench)
    return f"{len(bench.seeds)} seeds, in two processes with different hash seeds and histories"


def _measured(bench: Bench, main: RawChild) -> list[Start]:
    """Reset all seeds, or fewer of them where one takes long."""
    table = bench.table(main)
    before = main.cpu_seconds
    starts = table.starts(bench.seeds[:_FIRST])
    cost = (main.cpu_seconds - before) / _FIRST
    bench.reset_cost = cost
    if cost > _VERY_SLOW_SECONDS:
        bench.seeds = bench.seeds[:_VERY_SLOW_SEEDS]
    elif cost > _SLOW_SECONDS:
        bench.seeds = bench.seeds[:_SLOW_SEEDS]
    return starts + table.starts(bench.seeds[_FIRST:])


def _other_room(bench: Bench) -> None:
    """Reset the seeds in reverse in the other room, and ask for the solutions there."""
    assert bench.inspection is not None
    solved = bench.inspection.has_solution
    seeds = bench.seeds[::-1] if solved else bench.seeds[:_WITHOUT_SOLUTION][::-1]
    child = bench.child("replay")
    starts = bench.table(child).starts(seeds)
    replies = _solutions(child, len(seeds)) if solved else []
    same = sameness.games(bench) if bench.kind == "game" else sameness.tools(bench)
    same.starts(seeds, starts)
    if bench.stop:
        return
    for seed, reply in zip(seeds, replies, strict=False):
        if isinstance(reply, Raised):
            bench.problem(raised_problem(reply), "solvability", seed=seed)
        elif reply.bad is not None:
            wanted = "a list of str" if bench.kind == "game" else "lists of call(...)"
            seen = _described(reply.bad)
            bench.found("SPD601", f"solution() returns {wanted}; it returned {seen}", seed=seed)
        elif reply.actions is not None:
            bench.solutions[seed] = list(reply.actions)
        elif reply.calls is not None:
            bench.solutions[seed] = [list(turn) for turn in reply.calls]


def _solutions(child: RawChild, count: int) -> list[RawSolution | Raised]:
    """Ask for the solutions of the first slots, of fewer where one takes long."""
    before = child.cpu_seconds
    replies = child.solution(range(min(_FIRST, count)))
    cost = (child.cpu_seconds - before) / max(1, len(replies))
    if cost > _VERY_SLOW_SECONDS:
        count = min(count, _VERY_SLOW_SEEDS)
    elif cost > _SLOW_SECONDS / 4:
        count = min(count, _SLOW_SEEDS)
    return replies + child.solution(range(_FIRST, count))


def _described(bad: Bad) -> str:
    return an(bad.type_name) + (f" ({bad.reason})" if bad.reason else "")
