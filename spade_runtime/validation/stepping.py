"""The step gate: text of every kind is said to the game, and both rooms must answer alike."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from spade_runtime.validation import sameness
from spade_runtime.validation.actions import (
    UNKNOWN,
    boxed_form,
    fill,
    from_text,
    has_placeholder,
    numbers,
    quoted,
)
from spade_runtime.validation.bench import Bench
from spade_runtime.validation.games import Play, first_difference, same_start, script
from spade_runtime.validation.probing import batches, opening, solution
from spade_runtime.validation.replies import raised_problem

_FIXED_SEEDS = 12


def run_step(bench: Bench) -> str:
    """Play the batches until one shows an error; then compare the rooms."""
    replays: list[Play] = []
    for solving, batch in batches(bench):
        (replays if solving else bench.plays).extend(batch)
        bench.replays = replays
        for play in batch:
            if play.problem is not None:
                bench.problem(play.problem, "step", seed=play.seed, action=_last(play))
        bench.charge()
        if bench.findings.failed_in("step"):
            # More of the same would cost much where a step is dear.
            bench.stop = bench.thrift > 1
            break
    everything = [*replays, *bench.plays]
    _past_the_end(bench, everything)
    same = sameness.games(bench)
    same.rooms([*replays[:16], *bench.plays])
    same.later([*replays[:8], *bench.plays])
    same.reused([*replays[:8], *bench.plays])
    same.solutions()
    _one_task(bench)
    _close(bench)
    steps = sum(len(play.actions) for play in everything)
    return f"{len(everything)} episodes, {steps} steps, a sample of them in a second process"


def _last(play: Play) -> str | None:
    return play.actions[-1] if play.actions else None


def _past_the_end(bench: Bench, plays: Iterable[Play]) -> None:
    for play in plays:
        if play.problem is None and not play.ended and len(play.actions) >= bench.max_turns:
            bench.found(
                "SPD406",
                f"an episode ends within max_turns = {bench.max_turns} messages; this one went "
                "on, so the runtime has to truncate it",
                seed=play.seed,
                action=_last(play),
            )
            return


def _one_task(bench: Bench) -> None:
    """Whether every seed gives the same play (SPD307)."""
    seeds = bench.seeds[:_FIXED_SEEDS]
    first = bench.starts[seeds[0]]
    if len(seeds) < 2 or not all(same_start(first, bench.starts[seed]) for seed in bench.seeds):
        return
    if bench.findings.failed:
        # What ends in an error at once tells nothing of the task behind it.
        return
    table = bench.table(bench.child("main"))
    for actions in _fixed_lists(bench):
        plays = table.play(seeds, [script(actions)] * len(seeds), bench.max_turns)
        if any(first_difference(plays[0], play) is not None for play in plays[1:]):
            return
    bench.found(
        "SPD307",
        f"{len(bench.seeds)} seeds give the same first observation, and {len(seeds)} of them the "
        "same answers to a fixed list of actions: there is one task only",
        seed=seeds[0],
    )


def _fixed_lists(bench: Bench) -> list[list[str]]:
    """Action lists that would tell two tasks apart: the solution, guesses, and what was played."""
    said = opening(bench, bench.seeds[0])
    commands = [command for command in quoted(said) if has_placeholder(command)]
    guesses = _guesses(said)
    told = from_text(said, 30)
    listed = [*guesses, *told, UNKNOWN]
    listed += [fill(command, guess) for command in commands[:4] for guess in guesses]
    if bench.boxes:
        listed = [boxed_form(action) for action in listed]
    lists = [solution(bench, bench.seeds)] if solution(bench, bench.seeds) else []
    size = bench.max_turns
    lists += [listed[i : i + size] for i in range(0, min(len(listed), 90), size)]
    played = sorted(bench.plays, key=lambda play: -len({str(r) for r in play.replies}))
    lists += [play.actions for play in played[:8]]
    return lists[:40]


def _guesses(text: str) -> list[str]:
    """Numbers across the ranges that a text names, the middle first, and some of all sizes."""
    found = sorted({int(n) for n in numbers(text) if n.isdecimal() and len(n) < 10})
    made = [7, 25, 42, 50, 100, 250, 500]
    for low, high in pairwise(found):
        made = [low + (high - low) * part // 8 for part in (4, 2, 6, 1, 3, 5, 7)] + made
    return [str(number) for number in dict.fromkeys(made)][:24]


def _close(bench: Bench) -> None:
    """`close` must not raise."""
    child = bench.child("main")
    for reply in child.close_instances(range(8)):
        if reply is not None:
            bench.problem(raised_problem(reply), "step")
