"""The gates load and reset: does the module load, and does `reset` give sound, repeatable tasks."""

from __future__ import annotations

from collections.abc import Sequence

from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.wire import Bad, Raised, RawReset, RawSolution
from spade_runtime.validation.bench import Bench
from spade_runtime.validation.games import Start, same_start, stop_at_fault
from spade_runtime.validation.replies import raised_problem
from spade_runtime.validation.text import parting

SEEDS = 64
"""Seeds of the gates: a flaw on one seed in twenty is found with 96 %."""
_FIRST = 4
_SLOW_SECONDS, _VERY_SLOW_SECONDS = 0.02, 0.15
_SLOW_SEEDS, _VERY_SLOW_SEEDS = 24, 8


def run_load(bench: Bench) -> str:
    """Load the module."""
    child = bench.child("main")
    bench.loaded = child.load()
    if bench.loaded.raised is not None:
        bench.problem(raised_problem(bench.loaded.raised), "load")
        bench.stop = True
    return "the module was run once"


def run_reset(bench: Bench) -> str:
    """Reset on many seeds, here and in the other room."""
    main = bench.child("main")
    bench.seeds = bench.stream.seeds("reset", SEEDS)
    starts = _measured(bench, main)
    checker = bench.table(main)
    for seed, start in zip(bench.seeds, starts, strict=True):
        bench.starts[seed] = start
        problem = checker.check_start(start)
        stop_at_fault(problem, seed, None)
        if problem is not None:
            gate = "load" if problem.code == "SPD302" else "reset"
            bench.problem(problem, gate, seed=seed)
            bench.stop = True
        elif type(start) is RawReset and start.turns_bad is not None:
            bench.found("SPD504", _bad_turns(start.turns_bad), gate="reset", seed=seed)
            bench.stop = True
    if bench.stop:
        return f"{len(bench.seeds)} seeds"
    _compare_rooms(bench)
    return f"{len(bench.seeds)} seeds, each in two processes with different hash seeds"


def _measured(bench: Bench, main: RawChild) -> list[Start]:
    """Reset all seeds, or fewer of them where one takes long."""
    table = bench.table(main)
    before = main.cpu_seconds
    starts = table.starts(bench.seeds[:_FIRST])
    cost = (main.cpu_seconds - before) / _FIRST
    if cost > _VERY_SLOW_SECONDS:
        bench.seeds = bench.seeds[:_VERY_SLOW_SEEDS]
    elif cost > _SLOW_SECONDS:
        bench.seeds = bench.seeds[:_SLOW_SEEDS]
    return starts + table.starts(bench.seeds[_FIRST:])


def _compare_rooms(bench: Bench) -> None:
    """The same seeds in the other room must give the same tasks (SPD306)."""
    other = bench.table(bench.child("replay"))
    starts = other.starts(bench.seeds[:_FIRST]) + other.starts(bench.seeds[_FIRST:])
    for seed, start in zip(bench.seeds, starts, strict=True):
        if not same_start(bench.starts[seed], start):
            bench.found("SPD306", _difference(bench.starts[seed], start), seed=seed)
            bench.stop = True
            return


def _difference(left: Start, right: Start) -> str:
    if type(left) is RawReset and type(right) is RawReset:
        if left.observation != right.observation:
            before = parting(str(left.observation), str(right.observation))
            return f"one seed must give one first observation; in a second process it {before}"
        if left.turns != right.turns:
            return "one seed must give the same instructions; a second process gave others"
        return "one seed must give one info; a second process gave another"
    return "reset behaved differently in a second process"


def _bad_turns(bad: Bad) -> str:
    return f"user_turns() gives texts; one was a {bad.type_name}"


def run_solver(bench: Bench) -> None:
    """Reset in another order in a fresh child, and ask for the solutions there.

    The order shows what one episode leaves behind for the next (SPD405): each seed must give the
    task that it gave before.
    """
    child = bench.solver = bench.fresh("main")
    order = bench.seeds[::-1]
    starts = bench.table(child).starts(order)
    for seed, start in zip(order, starts, strict=True):
        if not same_start(bench.starts[seed], start):
            bench.found(
                "SPD405",
                "after other episodes in the same process this seed gives another first "
                f"observation or info: {_difference(bench.starts[seed], start)}",
                seed=seed,
            )
            break
    assert bench.inspection is not None
    if bench.inspection.has_solution:
        _take_solutions(bench, order, child.solution(range(len(order))))


def _take_solutions(
    bench: Bench, seeds: Sequence[int], replies: Sequence[RawSolution | Raised]
) -> None:
    for seed, reply in zip(seeds, replies, strict=True):
        if type(reply) is Raised:
            bench.problem(raised_problem(reply), "solvability", seed=seed)
        elif type(reply) is RawSolution:
            if reply.bad is not None:
                wanted = "a list of str" if bench.kind == "game" else "lists of call(...)"
                bench.found("SPD601", f"solution() returns {wanted}; {_solution_bad(reply.bad)}")
            elif reply.actions is not None:
                bench.solutions[seed] = list(reply.actions)
            elif reply.calls is not None:
                bench.solutions[seed] = [list(turn) for turn in reply.calls]


def _solution_bad(bad: Bad) -> str:
    reason = f" ({bad.reason})" if bad.reason else ""
    return f"it returned a {bad.type_name}{reason}"
