"""Plays around a game: the batches of episodes that the step gate looks at.

Solutions first, then single actions over and over, actions made from what the game answered,
mixtures of everything, and solutions with one action spoilt. How many depends on what a step costs
in processor time, so that a slow class is checked thinly and not refused.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

from spade_runtime.sandbox.wire import RawReset, RawStep
from spade_runtime.validation.actions import FIXED, UNKNOWN, from_text, probes, quoted, spoilt
from spade_runtime.validation.bench import Bench, spread
from spade_runtime.validation.games import Play, Player, script

SEEDS_TRIED = 6
SPOILT_PLACES = 8
_MEASURED = 4
_FULL_LENGTH = 16
"""So many single actions are repeated until the last turn; the others a few times."""
_FEW_TURNS = 5
_MIXED = 16
_PROBES, _TOLD = 96, 64
_STEPS_LIMIT = 3000
"""Steps of the replays of solutions in one room."""
_TIERS = ((0.002, 1), (0.02, 4), (float("inf"), 16))
"""Up to so many processor seconds a step, one in so many episodes is played."""


def batches(bench: Bench) -> Iterator[tuple[bool, list[Play]]]:
    """Play the batches, one after the other.

    Yields:
        Whether the batch replays solutions, and its episodes.
    """
    child = bench.child("main")
    table = bench.table(child)
    seeds = [seed for seed in bench.seeds if seed in bench.solutions]
    turns = bench.max_turns
    before = child.cpu_seconds
    first = seeds[:_MEASURED]
    if first:
        measured = table.play(first, [script(bench.solutions[s]) for s in first], turns)
    else:
        few = spread(bench.seeds, _MEASURED)
        measured = table.play(few, [script(FIXED[:3])] * _MEASURED, turns)
    steps = sum(len(play.actions) for play in measured)
    bench.thrift = _thrift((child.cpu_seconds - before) / max(1, steps))
    yield bool(first), measured

    more = _affordable(bench, seeds[_MEASURED:])
    replays = table.play(more, [script(bench.solutions[s]) for s in more], turns)
    yield True, replays

    tried = bench.seeds[:SEEDS_TRIED]
    openings = [opening(bench, seed) for seed in tried[:3]]
    actions = probes(openings, solution(bench, tried), _PROBES // bench.thrift)
    repeated = _repeat(bench, tried, actions)
    yield False, repeated

    told = _new_actions([*measured, *replays, *repeated], actions)[: _TOLD // bench.thrift]
    yield False, _repeat(bench, tried, told)
    yield False, _mix(bench, tried, [*actions, *told])
    yield False, _spoil(bench, tried)


def _thrift(cost: float) -> int:
    return next(factor for limit, factor in _TIERS if cost <= limit)


def opening(bench: Bench, seed: int) -> str:
    """The first observation of a seed."""
    start = bench.starts[seed]
    return (
        start.observation
        if isinstance(start, RawReset) and isinstance(start.observation, str)
        else ""
    )


def solution(bench: Bench, seeds: Sequence[int]) -> list[str]:
    """The solution of the first of some seeds that has one."""
    return next((bench.solutions[seed] for seed in seeds if bench.solutions.get(seed)), [])


def _affordable(bench: Bench, seeds: Sequence[int]) -> list[int]:
    """As many seeds as the budget of steps allows, at least some."""
    kept: list[int] = []
    steps = 0
    for seed in seeds:
        steps += min(len(bench.solutions[seed]), bench.max_turns)
        if steps > _STEPS_LIMIT // bench.thrift and len(kept) >= 16 // bench.thrift:
            break
        kept.append(seed)
    return kept


def _repeat(bench: Bench, seeds: Sequence[int], actions: Sequence[str]) -> list[Play]:
    """Each action over and over; commands and a few others until the last turn."""
    commands = {text for seed in seeds for text in quoted(opening(bench, seed))}
    full = [a for a in actions if a in commands or a in ("", "0", "1", UNKNOWN)]
    full += [a for a in solution(bench, seeds) if a not in full]
    long = set(full[: max(4, _FULL_LENGTH // bench.thrift)])
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
    where = spread(seeds, max(1, _MIXED // bench.thrift))
    players = [
        _mixer(random.Random(chooser.random()), pool, solution(bench, [seed])) for seed in where
    ]
    turns = min(bench.max_turns, 40)
    return bench.table(bench.child("main")).play(where, players, turns)


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
    places = max(1, SPOILT_PLACES // bench.thrift)
    for seed in [seed for seed in seeds if seed in bench.solutions][: 2 if places > 1 else 1]:
        steps = bench.solutions[seed]
        length = min(len(steps), bench.max_turns)
        for place in range(0, length, max(1, length // places)):
            before, action, after = steps[:place], steps[place], steps[place + 1 :]
            for wrong in [*spoilt(action), "", UNKNOWN]:
                players.append(script([*before, wrong, action, *after]))
            # A reward that is paid again and again shows when its action is repeated.
            players.append(script([*before, *[action] * (bench.max_turns - place)]))
        where += [seed] * (len(players) - len(where))
    if not players:
        return []
    return bench.table(bench.child("main")).play(where, players, bench.max_turns)
