"""The step gate: text of every kind is said to the game, and both rooms must answer alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spade_runtime.sandbox.wire import RawStep
from spade_runtime.validation.actions import UNKNOWN, from_text
from spade_runtime.validation.bench import Bench
from spade_runtime.validation.games import Play, Player, first_difference, same_start, script
from spade_runtime.validation.probing import SPOILT_PLACES, batches, opening, solution
from spade_runtime.validation.replies import raised_problem
from spade_runtime.validation.text import parting, shown

_FIXED_SEEDS = 12


def run_step(bench: Bench) -> str:
    """Play the batches until one shows an error; then compare the rooms."""
    played: list[list[Play]] = []
    replays: list[Play] = []
    for solving, batch in batches(bench):
        played.append(batch)
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
    everything = [play for batch in played for play in batch]
    _past_the_end(bench, everything)
    _compare_rooms(bench, played)
    _compare_with_later(bench, replays)
    _reused(bench, replays)
    _one_task(bench)
    _close(bench)
    steps = sum(len(play.actions) for play in everything)
    return f"{len(everything)} episodes, {steps} steps, each in two processes"


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


def _compare_rooms(bench: Bench, batches: Sequence[Sequence[Play]]) -> None:
    """Every batch again in the other room: same seeds, same actions, same transitions."""
    table = bench.table(bench.child("replay"))
    for plays in batches:
        for play, other in zip(plays, table.play(*_recorded(plays)), strict=True):
            if play.problem is not None or not same_start(play.start, other.start):
                continue
            place = first_difference(play, other)
            if place is not None:
                bench.found(
                    "SPD404",
                    "the same seed and actions must give the same transitions; in a second "
                    f"process step {place + 1} {_parting(play, other, place)}",
                    seed=play.seed,
                    action=play.actions[place],
                )
                bench.stop = True
                return


def _recorded(plays: Sequence[Play]) -> tuple[list[int], list[Player], list[int]]:
    return (
        [play.seed for play in plays],
        [script(play.actions) for play in plays],
        [len(play.actions) for play in plays],
    )


def _shown(play: Play, place: int) -> str:
    reply = play.replies[place] if place < len(play.replies) else None
    if not isinstance(reply, RawStep):
        return "an error" if reply is not None else "nothing"
    return f"({shown(str(reply.observation), 60)}, {reply.reward})"


def _parting(play: Play, other: Play, place: int) -> str:
    """How a step of two plays differs, in words that are the same in every run."""
    replies = [one.replies[place] if place < len(one.replies) else None for one in (play, other)]
    first, second = replies
    if not isinstance(first, RawStep) or not isinstance(second, RawStep):
        return "raised or ended otherwise"
    if first.observation != second.observation:
        return f"gave a text that {parting(str(first.observation), str(second.observation))}"
    if first.reward != second.reward:
        return f"paid another reward than {first.reward}"
    if (first.terminated, first.truncated) != (second.terminated, second.truncated):
        return "did not end the episode alike"
    return "gave another info"


def _compare_with_later(bench: Bench, replays: Sequence[Play]) -> None:
    """The first episodes again in the same process: what came between must not show (SPD405)."""
    if bench.findings.has("SPD404", "SPD405"):
        return
    sample = [*replays[:8], *bench.plays[:24], *bench.plays[-SPOILT_PLACES:]]
    again = bench.table(bench.child("main")).play(*_recorded(sample))
    for play, other in zip(sample, again, strict=True):
        if not same_start(play.start, other.start):
            bench.found(
                "SPD405",
                "after other episodes in the same process this seed gives another first "
                "observation or info",
                seed=play.seed,
            )
        elif play.problem is None and (place := first_difference(play, other)) is not None:
            bench.found(
                "SPD405",
                "after other episodes in the same process the same seed and actions give "
                f"{_shown(other, place)} where they gave {_shown(play, place)}",
                seed=play.seed,
                action=play.actions[place],
            )
        else:
            continue
        bench.stop = True
        return


def _reused(bench: Bench, replays: Sequence[Play]) -> None:
    """An instance that was built under another seed must give the same play (SPD308)."""
    if bench.findings.has("SPD404", "SPD405") or bench.solver is None:
        return
    sample = [play for play in (*replays[:8], *bench.plays[:16]) if play.problem is None]
    again = bench.table(bench.solver).play(*_recorded(sample), reused=True)
    for play, other in zip(sample, again, strict=True):
        alike = same_start(play.start, other.start)
        if not alike or first_difference(play, other) is not None:
            bench.found(
                "SPD308",
                "an instance that was built under another seed and reset with this one plays "
                "differently from a fresh one: reset(seed) does not set everything",
                seed=play.seed,
            )
            return


def _one_task(bench: Bench) -> None:
    """Whether every seed gives the same play (SPD307)."""
    seeds = bench.seeds[:_FIXED_SEEDS]
    first = bench.starts[seeds[0]]
    if len(seeds) < 2 or not all(same_start(first, bench.starts[seed]) for seed in bench.seeds):
        return
    listed = [*solution(bench, seeds), *from_text(opening(bench, seeds[0]), 30), "1", UNKNOWN]
    lists = [
        listed[i : i + bench.max_turns] for i in range(0, min(len(listed), 60), bench.max_turns)
    ]
    table = bench.table(bench.child("main"))
    for actions in lists[:20]:
        plays = table.play(seeds, [script(actions)] * len(seeds), bench.max_turns)
        if any(first_difference(plays[0], play) is not None for play in plays[1:]):
            return
    bench.found(
        "SPD307",
        f"{len(bench.seeds)} seeds give the same first observation, and {len(seeds)} of them the "
        "same answers to a fixed list of actions: there is one task only",
        seed=seeds[0],
    )


def _close(bench: Bench) -> None:
    """`close` must not raise."""
    child = bench.child("main")
    for reply in child.close_instances(range(8)):
        if reply is not None:
            bench.problem(raised_problem(reply), "step")
