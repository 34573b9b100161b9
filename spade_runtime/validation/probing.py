"""Plays around a game: the batches of episodes that the step gate looks at.

Solutions first, then single actions over and over, actions made from what the game answered,
mixtures of everything, and solutions with one action spoilt. How many depends on what a step costs
in processor time, so that a slow class is checked thinly and not refused.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from spade_runtime.sandbox.wire import RawReset, RawStep
from spade_runtime.validation.actions import (
    FIXED,
    UNKNOWN,
    boxed_form,
    combined,
    from_text,
    probes,
    quoted,
    spoilt,
)
from spade_runtime.validation.bench import Bench, spread
from spade_runtime.validation.games import SLOTS, Play, Player, script

SEEDS_TRIED = 6
SPOILT_PLACES = 8
_MEASURED = 4
_RESET_WEIGHT = 4
"""A reset may cost so many times a step before episodes are saved."""
_FULL_LENGTH = 20
"""So many single actions are repeated until the last turn."""
_SINGLES = 72
_PAIRED = 4
_MIXED = 12
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
    spent = child.cpu_seconds - before - bench.reset_cost * _MEASURED
    bench.thrift = max(_thrift(spent / max(1, steps)), _thrift(bench.reset_cost / _RESET_WEIGHT))
    yield bool(first), measured

    more = _affordable(bench, seeds[_MEASURED:])
    replays = table.play(more, [script(bench.solutions[s]) for s in more], turns)
    yield True, replays

    tried = bench.seeds[:SEEDS_TRIED]
    openings = [opening(bench, seed) for seed in tried[:3]]
    actions = probes(openings, solution(bench, tried), _PROBES // bench.thrift, boxes=bench.boxes)
    singles = _single(bench, tried, openings, actions)
    yield False, singles
    yield False, _repeat(bench, tried, openings)

    told = _new_actions([*measured, *replays, *singles], actions)[: _TOLD // bench.thrift]
    told = _said(bench, told)
    yield False, work_off(bench, tried, [], [*actions, *told])
    yield False, _mix(bench, tried, [*actions, *told])
    yield False, _spoil(bench, tried)


def _said(bench: Bench, actions: Sequence[str]) -> list[str]:
    """Actions as they reach the class."""
    return [boxed_form(action) for action in actions] if bench.boxes else list(actions)


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


def _single(
    bench: Bench, seeds: Sequence[int], openings: Sequence[str], actions: Sequence[str]
) -> list[Play]:
    """The first actions, each said twice at the very beginning of an episode."""
    commands = _said(bench, [text for said in openings for text in quoted(said)])
    chosen = list(dict.fromkeys([*FIXED, *commands, *actions[len(FIXED) :][:12]]))
    chosen = chosen[: _SINGLES // bench.thrift]
    players = [script([action, action]) for action in chosen]
    return bench.table(bench.child("main")).play(spread(seeds, len(chosen)), players, 2)


def _repeat(bench: Bench, seeds: Sequence[int], openings: Sequence[str]) -> list[Play]:
    """Commands, the solution's actions and a few others, each until the last turn."""
    filled = [text for said in openings for text in from_text(said, 40) if " " in text]
    commands = [text for said in openings for text in quoted(said)]
    named = _said(bench, [*commands, *filled, "1", "0"])
    actions = dict.fromkeys([UNKNOWN, "", *named[: len(commands)], *solution(bench, seeds), *named])
    chosen = list(actions)[: max(4, _FULL_LENGTH // bench.thrift)]
    players = [script([action] * bench.max_turns) for action in chosen]
    # Two actions in turn: a lamp that is paid for whenever it is switched.
    few = list(dict.fromkeys([*named[: len(commands)], *solution(bench, seeds)]))[:_PAIRED]
    for first, second in combinations(few, 2):
        players.append(script([first, second] * bench.max_turns))
    table = bench.table(bench.child("main"))
    return table.play(spread(seeds, len(players)), players, bench.max_turns)


def work_off(
    bench: Bench, seeds: Sequence[int], before: Sequence[str], actions: Sequence[str]
) -> list[Play]:
    """Say every action once, one after the other in as few episodes as they take.

    Args:
        bench: the file.
        seeds: reset seeds, taken in turn.
        before: what each episode says first.
        actions: what is then said; an episode that ends early leaves the rest to the next.
    """
    queue = deque(actions)
    table = bench.table(bench.child("main"))
    room = max(1, bench.max_turns - len(before))
    plays: list[Play] = []
    while queue:
        left = len(queue)
        count = min(SLOTS, max(1, left // room + 1, left // 8))
        where = spread(seeds, count)
        plays += table.play(where, [_taker(before, queue) for _ in where], bench.max_turns)
        if len(queue) == left:
            break
    return plays


def _taker(before: Sequence[str], queue: deque[str]) -> Player:
    def act(_: str, turn: int) -> str | None:
        if turn < len(before):
            return before[turn]
        return queue.popleft() if queue else None

    return act


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
        bench.worded(
            _mixer(
                random.Random(chooser.random()),
                pool,
                solution(bench, [seed]),
                quoted(opening(bench, seed)),
            )
        )
        for seed in where
    ]
    turns = min(bench.max_turns, 40)
    return bench.table(bench.child("main")).play(where, players, turns)


def _mixer(
    chooser: random.Random,
    pool: Sequence[str],
    solution: Sequence[str],
    commands: Sequence[str],
) -> Player:
    def act(observation: str, turn: int) -> str:
        draw = chooser.random()
        if solution and draw < 0.35:
            return chooser.choice(solution)
        told: list[str] = []
        if draw < 0.55:
            told = combined([*commands, *solution], observation[:2000])
        elif draw < 0.7:
            told = from_text(observation[:2000], 12)
        return chooser.choice(told or pool)

    return act


def _text_after(bench: Bench, seed: int, place: int) -> str:
    """What the game said after the first `place` actions of a seed's solution."""
    for play in bench.replays:
        if isinstance(play, Play) and play.seed == seed and 0 < place <= len(play.replies):
            reply = play.replies[place - 1]
            if isinstance(reply, RawStep) and isinstance(reply.observation, str):
                return reply.observation[:2000]
    return opening(bench, seed)


def _spoil(bench: Bench, seeds: Sequence[int]) -> list[Play]:
    """Solutions with actions spoilt, so that branches deep inside are reached."""
    where: list[int] = []
    players: list[Player] = []
    plays: list[Play] = []
    places = max(1, SPOILT_PLACES // bench.thrift)
    for seed in [seed for seed in seeds if seed in bench.solutions][: 2 if places > 2 else 1]:
        steps = bench.solutions[seed]
        length = min(len(steps), bench.max_turns)
        for place in range(0, length, max(1, -(-length // places))):
            before, action, after = steps[:place], steps[place], steps[place + 1 :]
            wrong = [*spoilt(action), "", UNKNOWN]
            told = _text_after(bench, seed, place)
            wider = combined([*steps, *quoted(opening(bench, seed))], told)
            plays += work_off(bench, [seed], before, [*wrong, *_said(bench, wider)])
            players += [script([*before, one, action, *after]) for one in wrong[:3]]
            # A reward that is paid again and again shows when its action is repeated.
            players.append(script([*before, *[action] * (bench.max_turns - place)]))
        where += [seed] * (len(players) - len(where))
    table = bench.table(bench.child("main"))
    return plays + table.play(where, players, bench.max_turns)
