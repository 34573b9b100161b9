"""Brings environments back that another one took down with their common child.

An environment is determined by its seed and its actions (contract.md), so those that did nothing
wrong are replayed in a fresh child, and the messages of the step that went wrong are given again,
one environment at a time, until the one at fault is found. What comes out differently than before
is not brought back: the environment keeps the fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spade_envs.seats import Seat, Table
from spade_runtime.sandbox.session import StepResult

if TYPE_CHECKING:
    from spade_envs.vector import SpadeVectorEnv

# Each culprit may cost a whole time limit before it is known.
_CULPRITS_MAX = 4


def restore(
    vector: SpadeVectorEnv,
    tables: Sequence[Table],
    outcomes: dict[int, StepResult],
    actions: Sequence[Any],
    resets: Sequence[int],
) -> dict[int, StepResult]:
    """Find the environments of lost children, and play the step again for the innocent ones.

    Args:
        vector: counts what is brought back.
        tables: all sessions of the vector.
        outcomes: results of the step.
        actions: the messages of the step.
        resets: environments that were reset in this step.

    Returns:
        The results that take the place of those in `outcomes`.
    """
    found: dict[int, StepResult] = {}
    for table in tables:
        fault = table.session.loss
        if fault is None or len(table.seats) == 1:
            continue
        down = {
            place: seat
            for place, seat in table.seats.items()
            if seat.fault is fault and not seat.failed and (place in outcomes or place in resets)
        }
        fresh = {place: seat for place, seat in down.items() if place not in outcomes}
        waiting = {place: seat for place, seat in down.items() if place in outcomes}
        found |= _again(table, fresh, waiting, actions)
        vector.restored += sum(seat.running for seat in down.values())
    return found


def _again(
    table: Table, fresh: dict[int, Seat], waiting: dict[int, Seat], actions: Sequence[Any]
) -> dict[int, StepResult]:
    """Play the messages of one table's step again, one at a time."""
    session, done = table.session, dict[int, StepResult]()
    told = {place: list(seat.actions) for place, seat in waiting.items()}
    shown = {place: seat.shown for place, seat in (*fresh.items(), *waiting.items())}
    culprits = 0
    while session.loss is not None and culprits <= _CULPRITS_MAX:
        ended = {place for place, result in done.items() if result.terminated or result.truncated}
        _replay(table, {place: shown[place] for place in shown if place not in ended}, told)
        for place in list(waiting) if culprits < _CULPRITS_MAX else ():
            seat = waiting.pop(place)
            if not seat.running:
                continue
            (done[place],) = session.step([actions[place]], slots=[seat.slot])
            told[place].append(done[place].info["spade"]["action"])
            shown[place] = done[place].observation
            if session.loss is not None:
                break
        culprits += 1
    return done


def _replay(table: Table, shown: dict[int, str], told: dict[int, list[Any]]) -> None:
    """Reset environments, give them the actions that they were given, and compare the last text."""
    session, lost = table.session, table.session.loss
    assert lost is not None
    last: dict[int, str] = {}
    by_limit: dict[int | None, list[int]] = {}
    for place in shown:
        by_limit.setdefault(table.seats[place].limit, []).append(place)
    for limit, places in by_limit.items():
        seats = [table.seats[place] for place in places]
        begun = session.reset(
            [seat.task for seat in seats], slots=[seat.slot for seat in seats], max_turns=limit
        )
        last |= {place: one.observation for place, one in zip(places, begun, strict=True)}
    for turn in range(max((len(told.get(place, ())) for place in shown), default=0)):
        moving = [
            place
            for place in shown
            if turn < len(told.get(place, ())) and table.seats[place].running
        ]
        slots = [table.seats[place].slot for place in moving]
        results = session.act([told[place][turn] for place in moving], slots=slots)
        last |= {place: one.observation for place, one in zip(moving, results, strict=True)}
    for place, text in shown.items():
        if last[place] != text and table.seats[place].running:
            session.drop(table.seats[place].slot, lost)
