"""The step gate: text of every kind is said to the game, and both rooms must answer alike."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from spade_runtime.sandbox.wire import RawReset, RawStep
from spade_runtime.validation.actions import UNKNOWN, from_text, probes, quoted, spoilt
from spade_runtime.validation.bench import Bench, spread
from spade_runtime.validation.games import (
    Play,
    Player,
    first_difference,
    same_start,
    script,
)
from spade_runtime.validation.replies import raised_problem
from spade_runtime.validation.text import shown

SEEDS_TRIED = 6
_FULL_LENGTH = 16
"""So many single actions are repeated until the last turn; the others a few times."""
_FEW_TURNS = 5
_MIXED = 16
_SPOILT_PLACES = 8
_STEPS_LIMIT = 3000
"""Steps of the replays of solutions in one room."""
_FIXED_SEEDS = 12


def run_step(bench: Bench) -> str:
    """Play the solutions, every probe and mixtures of them; then compare the rooms."""
    table = bench.table(bench.child("main"))
    seeds = [seed for seed in bench.seeds if seed in bench.solutions]
    replayed = _affordable(bench, seeds)
    scripts = [bench.solutions[seed] for seed in replayed]
    turns = bench.max_turns
    replays = table.play(replayed, [script(actions) for actions in scripts], turns)
    bench.charge()

    tried = bench.seeds[:SEEDS_TRIED]
    first = probes([_opening(bench, seed) for seed in tried[:3]], _solution(bench, tried))
    repeated = _repeat(bench, tried, first)
    bench.charge()
    told = _new_actions([*replays, *repeated], first)
    # The other room plays these batches in this order and in the same slots.
    batches = [replays, repeated, _repeat(bench, tried, told)]
    batches += [_mix(bench, tried, [*first, *told]), _spoil(bench, tried)]
    bench.replays, bench.plays = replays, [play for part in batches[1:] for play in part]
    bench.charge()

    everything = [*replays, *bench.plays]
    for play in everything:
        if play.problem is not None:
            bench.problem(play.problem, "step", seed=play.seed, action=_last(play))
    _past_the_end(bench, everything)
    _compare_rooms(bench, batches)
    _compare_with_later(bench, replays)
    _reused(bench, replays)
    _one_task(bench)
    _close(bench)
    steps = sum(len(play.actions) for play in everything)
    return f"{len(everything)} episodes, {steps} steps, each in two processes"


def _opening(bench: Bench, seed: int) -> str:
    start = bench.starts[seed]
    return (
        start.observation
        if isinstance(start, RawReset) and isinstance(start.observation, str)
        else ""
    )


def _solution(bench: Bench, seeds: Sequence[int]) -> list[str]:
    return next((bench.solutions[seed] for seed in seeds if bench.solutions.get(seed)), [])


def _last(play: Play) -> str | None:
    return play.actions[-1] if play.actions else None


def _affordable(bench: Bench, seeds: Sequence[int]) -> list[int]:
    """As many seeds as the budget of steps allows, at least sixteen."""
    kept: list[int] = []
    steps = 0
    for seed in seeds:
        steps += min(len(bench.solutions[seed]), bench.max_turns)
        if steps > _STEPS_LIMIT and len(kept) >= 16:
            break
        kept.append(seed)
    return kept


def _repeat(bench: Bench, seeds: Sequence[int], actions: Sequence[str]) -> list[Play]:
    """Each action over and over; commands and a few others until the last turn."""
    commands = {text for seed in seeds for text in quoted(_opening(bench, seed))}
    full = [a for a in actions if a in commands or a in ("", "0", "1", UNKNOWN)]
    full += [a for a in _solution(bench, seeds) if a not in full]
    long = set(full[:_FULL_LENGTH])
    turns = [bench.max_turns if a in long else min(_FEW_TURNS, bench.max_turns) for a in actions]
    players = [script([a] * n) for a, n in zip(actions, turns, strict=True)]
    table = bench.table(bench.child("main"))
    return table.play(spread(seeds, len(actions)), players, turns)


def _new_actions(plays: Iterable[Play], known: Sequence[str]) -> list[str]:
    """Actions made of what the game answered, where it said something new."""
    old = set(known)
    texts: dict[str, None] = {}
    for play in plays:
        for reply in play.replies[:4]:
            if isinstance(reply, RawStep) and isinstance(reply.observation, str):
                texts[reply.observation[:2000]] = None
        if len(texts) > 40:
            break
    made: dict[str, None] = {}
    for text in texts:
        made.update(dict.fromkeys(a for a in from_text(text, 16) if a not in old))
        if len(made) > 64:
            break
    return list(made)[:64]


def _mix(bench: Bench, seeds: Sequence[int], actions: Sequence[str]) -> list[Play]:
    """Random mixtures of everything that was tried, and of what the game says on the way."""
    chooser = bench.stream.chooser("mix")
    pool = [action for action in actions if len(action) < 200]
    players = [
        _mixer(random.Random(chooser.random()), pool, _solution(bench, [seed]))
        for seed in spread(seeds, _MIXED)
    ]
    turns = min(bench.max_turns, 40)
    return bench.table(bench.child("main")).play(spread(seeds, _MIXED), players, turns)


def _mixer(chooser: random.Random, pool: Sequence[str], solution: Sequence[str]) -> Player:
    def act(observation: str, turn: int) -> str:
        if solution and chooser.random() < 0.4:
            return chooser.choice(solution)
        told = from_text(observation[:2000], 12) if chooser.random() < 0.3 else []
        return chooser.choice(told or pool)

    return act


def _spoil(bench: Bench, seeds: Sequence[int]) -> list[Play]:
    """Solutions with one action spoilt, so that branches deep inside are reached."""
    where: list[int] = []
    players: list[Player] = []
    for seed in [seed for seed in seeds if seed in bench.solutions][:2]:
        solution = bench.solutions[seed]
        length = min(len(solution), bench.max_turns)
        step = max(1, length // _SPOILT_PLACES)
        for place in range(0, length, step):
            before, action, after = solution[:place], solution[place], solution[place + 1 :]
            for wrong in [*spoilt(action), "", UNKNOWN]:
                players.append(script([*before, wrong, action, *after]))
            # A reward that is paid again and again shows when its action is repeated.
            players.append(script([*before, *[action] * (bench.max_turns - place)]))
        where += [seed] * (len(players) - len(where))
    if not players:
        return []
    return bench.table(bench.child("main")).play(where, players, bench.max_turns)


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
                    f"process step {place + 1} gave {_shown(other, place)} where the first gave "
                    f"{_shown(play, place)}",
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


def _compare_with_later(bench: Bench, replays: Sequence[Play]) -> None:
    """The first episodes again in the same process: what came between must not show (SPD405)."""
    if bench.findings.has("SPD404", "SPD405"):
        return
    sample = [*replays[:8], *bench.plays[:24], *bench.plays[-_SPOILT_PLACES:]]
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
    listed = [*_solution(bench, seeds), *from_text(_opening(bench, seeds[0]), 30), "1", UNKNOWN]
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
