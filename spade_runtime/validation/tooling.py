"""The tools gate: schemas, user turns, criteria, and tools called with all that they allow."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from spade_runtime.codes import CODES
from spade_runtime.sandbox.wire import RawReset, RawTool
from spade_runtime.schemalint import tool_problems
from spade_runtime.validation.bench import Bench, spread
from spade_runtime.validation.calls import ArgumentMaker, ToolCall, seen_values
from spade_runtime.validation.games import same_start
from spade_runtime.validation.text import parting
from spade_runtime.validation.tooluse import Caller, ToolPlay, by_turns, recital

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
    _compare_rooms(bench, [replays, tried])
    _compare_with_later(bench, replays, tried)
    _reused(bench, replays, tried)
    _one_task(bench)
    calls = sum(len(play.calls) for play in (*replays, *tried))
    return f"{len(tools)} tools, {calls} calls, each in two processes"


def flat(turns: Sequence[Sequence[ToolCall]]) -> list[ToolCall]:
    """A solution's calls in one list."""
    return [(name, data) for turn in turns for name, data in turn]


def spoken(call: ToolCall) -> str:
    """A call as a message shows it."""
    return f"{call[0]}({call[1].decode(errors='replace')})"


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


def _recorded(plays: Sequence[ToolPlay]) -> tuple[list[int], list[Caller], list[int]]:
    return (
        [play.seed for play in plays],
        [recital(play.calls) for play in plays],
        [len(play.calls) for play in plays],
    )


def _difference(left: ToolPlay, right: ToolPlay) -> int | None:
    for place, (one, other) in enumerate(zip(left.replies, right.replies, strict=False)):
        if not isinstance(one, RawTool) or not isinstance(other, RawTool):
            if type(one) is not type(other):
                return place
        elif one.result != other.result or (
            isinstance(one.done, bool) and isinstance(other.done, bool) and one.done != other.done
        ):
            return place
    return (
        None
        if len(left.replies) == len(right.replies)
        else min(len(left.replies), len(right.replies))
    )


def _parting(play: ToolPlay, other: ToolPlay, place: int) -> str:
    """How a call of two plays differs, in words that are the same in every run."""
    replies = [one.replies[place] if place < len(one.replies) else None for one in (play, other)]
    first, second = replies
    if not isinstance(first, RawTool) or not isinstance(second, RawTool):
        return "raised or ended otherwise"
    if first.result != second.result:
        return f"gave a result that {parting(str(first.result), str(second.result))}"
    return "completed the user's turn in one of them only"


def _compare_rooms(bench: Bench, batches: Sequence[Sequence[ToolPlay]]) -> None:
    desk = bench.desk(bench.child("replay"))
    for plays in batches:
        for play, other in zip(plays, desk.play(*_recorded(plays)), strict=True):
            if play.problem is not None or not same_start(play.start, other.start):
                continue
            place = _difference(play, other)
            if place is not None:
                bench.found(
                    "SPD507",
                    f"the same seed and calls must give the same results; in a second process "
                    f"tool {play.calls[place][0]} {_parting(play, other, place)}",
                    seed=play.seed,
                    action=spoken(play.calls[place]),
                )
                bench.stop = True
                return


def _compare_with_later(
    bench: Bench, replays: Sequence[ToolPlay], tried: Sequence[ToolPlay]
) -> None:
    if bench.findings.has("SPD507", "SPD405"):
        return
    sample = [*replays[:8], *tried[:16], *tried[-4:]]
    again = bench.desk(bench.child("main")).play(*_recorded(sample))
    for play, other in zip(sample, again, strict=True):
        place = _difference(play, other) if play.problem is None else None
        if same_start(play.start, other.start) and place is None:
            continue
        bench.found(
            "SPD405",
            "after other episodes in the same process the same seed and calls give something "
            "else: a class-level value or a default argument remembers",
            seed=play.seed,
            action=None if place is None else spoken(play.calls[place]),
        )
        bench.stop = True
        return


def _reused(bench: Bench, replays: Sequence[ToolPlay], tried: Sequence[ToolPlay]) -> None:
    if bench.findings.has("SPD507", "SPD405") or bench.solver is None:
        return
    sample = [play for play in (*replays[:8], *tried[:8]) if play.problem is None]
    again = bench.desk(bench.solver).play(*_recorded(sample), reused=True)
    for play, other in zip(sample, again, strict=True):
        if not same_start(play.start, other.start) or _difference(play, other) is not None:
            bench.found(
                "SPD308",
                "an instance that was built under another seed and reset with this one gives "
                "another task than a fresh one: setup does not set everything",
                seed=play.seed,
            )
            return


def _one_task(bench: Bench) -> None:
    """Whether every seed gives the same task (SPD307)."""
    seeds = bench.seeds
    first = bench.starts[seeds[0]]
    if len(seeds) < 2 or not all(same_start(first, bench.starts[seed]) for seed in seeds):
        return
    if any(bench.solutions.get(seed) != bench.solutions.get(seeds[0]) for seed in seeds):
        return
    sample = bench.tool_plays[:4]
    for play in sample:
        again = bench.desk(bench.child("main")).play(
            spread(seeds[1:], 8), [recital(play.calls)] * 8, len(play.calls)
        )
        if any(_difference(play, other) is not None for other in again):
            return
    bench.found(
        "SPD307",
        f"{len(seeds)} seeds give the same instructions and the same answers: there is one task",
        seed=seeds[0],
    )
