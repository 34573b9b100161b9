"""The tools gate: schemas, user turns, criteria, and tools called with all that they allow."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from spade_runtime.codes import CODES
from spade_runtime.sandbox.wire import RawReset
from spade_runtime.schemalint import tool_problems
from spade_runtime.validation import sameness
from spade_runtime.validation.bench import Bench, spread
from spade_runtime.validation.calls import ArgumentMaker, ToolCall, seen_values
from spade_runtime.validation.games import same_start
from spade_runtime.validation.replayers import ToolReplayer
from spade_runtime.validation.tooluse import Caller, ToolPlay, by_turns, recital, spoken

TURNS_LOW, TURNS_HIGH = 3, 5
_SEEDS_TRIED = 4
_CALLS_EACH = 24
_RANDOM = 12
_RANDOM_CALLS = 24


def tools_of(bench: Bench) -> dict[str, dict[str, Any]]:
    """The declared tools' parameters by name."""
    assert bench.loaded is not None
    try:
        schemas = json.loads(bench.loaded.schemas)
        return {row["name"]: row["parameters"] for row in schemas}
    except (ValueError, RecursionError, KeyError, TypeError):
        return {}


def run_tools(bench: Bench) -> str:
    """Check what is declared, then play the solutions and every kind of call around them."""
    assert bench.loaded is not None
    for code, message in tool_problems(bench.loaded.schemas, bench.loaded.problems):
        bench.found(code if code in CODES else "SPD501", message, gate="tools")
    _turns(bench)
    if bench.findings.failed_in("tools"):
        bench.stop = True
        return "schemas and user turns"
    tools = tools_of(bench)
    desk = bench.desk(bench.child("main"))
    seeds = [seed for seed in bench.seeds if seed in bench.solutions]
    replays = desk.play(
        seeds, [by_turns(bench.solutions[seed]) for seed in seeds], 400, honest=True
    )
    tried = _around(bench, tools)
    bench.replays, bench.tool_plays = replays, tried
    bench.charge()
    for play in (*replays, *tried):
        if play.problem is not None:
            call = play.calls[-1] if play.calls else None
            gate = "tools" if play.problem.code[3] != "4" else "step"
            bench.problem(play.problem, gate, seed=play.seed, action=spoken(call) if call else None)
    same = sameness.tools(bench)
    same.rooms([*replays[:16], *tried])
    same.later([*replays[:8], *tried])
    same.reused([*replays[:8], *tried])
    same.solutions()
    _one_task(bench)
    calls = sum(len(play.calls) for play in (*replays, *tried))
    return f"{len(tools)} tools, {calls} calls, each in two processes"


def flat(turns: Sequence[Sequence[ToolCall]]) -> list[ToolCall]:
    """A solution's calls in one list."""
    return [(name, data) for turn in turns for name, data in turn]


def _turns(bench: Bench) -> None:
    for seed in bench.seeds:
        start = bench.starts[seed]
        count = len(start.turns or ()) if isinstance(start, RawReset) else 0
        if not TURNS_LOW <= count <= TURNS_HIGH and bench.dialect == "contract":
            bench.found(
                "SPD504",
                f"a task has {TURNS_LOW} to {TURNS_HIGH} user turns; this one has {count}",
                seed=seed,
            )
            return
        if isinstance(start, RawReset) and not all(text.strip() for text in start.turns or ()):
            bench.found("SPD504", "an instruction of user_turns() is empty", seed=seed)
            return


def _around(bench: Bench, tools: Mapping[str, Mapping[str, Any]]) -> list[ToolPlay]:
    """Calls of every kind, at the start and at each turn of the solution."""
    if not tools:
        return []
    chooser = bench.stream.chooser("calls")
    where: list[int] = []
    callers: list[Caller] = []
    for seed in bench.seeds[:_SEEDS_TRIED]:
        solution = bench.solutions.get(seed, [])
        maker = ArgumentMaker(tools, _values(bench, seed), chooser)
        for name in tools:
            callers.append(recital(maker.each(name, _CALLS_EACH)))
        before: list[ToolCall] = []
        for turn in solution:
            calls = [(name, data) for name, data in turn]
            near = [variant for call in calls for variant in maker.vary(call)]
            loose = [call for name in tools for call in maker.each(name, 6)]
            # What is tried must not complete the turn by itself before the rest was tried.
            callers.append(recital([*before, *near, *loose]))
            callers.append(recital([*before, *calls[:-1], *near]))
            before += calls
        for _ in range(_RANDOM // _SEEDS_TRIED):
            callers.append(_wanderer(maker, before))
        where += [seed] * (len(callers) - len(where))
    return bench.desk(bench.child("main")).play(where, callers, 200)


def _wanderer(maker: ArgumentMaker, solution: Sequence[ToolCall]) -> Caller:
    """Random calls, with the solution's own among them in order."""
    made: list[ToolCall] = []
    left = list(solution)
    for place in range(_RANDOM_CALLS):
        made.append(left.pop(0) if left and place % 3 == 2 else maker.any())
    return recital(made)


def _values(bench: Bench, seed: int) -> list[Any]:
    start = bench.starts[seed]
    texts = list(start.turns or ()) if isinstance(start, RawReset) else []
    found: list[Any] = []
    for _, data in flat(bench.solutions.get(seed, [])):
        found += _leaves(json.loads(data))
    found = [value for value in found if isinstance(value, (str, int)) and value is not True]
    unique = list(dict.fromkeys(value for value in found if value is not False))
    return [*unique, *(text for text in seen_values(texts) if text not in unique)]


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for item in value.items() for part in item for leaf in _leaves(part)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def _one_task(bench: Bench) -> None:
    """Whether every seed gives the same task (SPD307)."""
    seeds = bench.seeds
    first = bench.starts[seeds[0]]
    if len(seeds) < 2 or not all(same_start(first, bench.starts[seed]) for seed in seeds):
        return
    if any(bench.solutions.get(seed) != bench.solutions.get(seeds[0]) for seed in seeds):
        return
    replayer = ToolReplayer(bench)
    sample = bench.tool_plays[:4]
    for play in sample:
        again = bench.desk(bench.child("main")).play(
            spread(seeds[1:], 8), [recital(play.calls)] * 8, len(play.calls)
        )
        if any(replayer.difference(play, other) is not None for other in again):
            return
    bench.found(
        "SPD307",
        f"{len(seeds)} seeds give the same instructions and the same answers: there is one task",
        seed=seeds[0],
    )
