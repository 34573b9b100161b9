"""Where the environments of a vector sit: which session plays them, in which slot, how far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import or_
from typing import Any, NamedTuple

import numpy as np
from gymnasium.utils import seeding

from spade_envs.references import resolve
from spade_envs.shared import shared_pool
from spade_envs.vector_infos import Places
from spade_runtime.errors import EnvFault, EpisodeOver, UsageError
from spade_runtime.messages import with_hint
from spade_runtime.sandbox.book import Moves, fault_notes
from spade_runtime.sandbox.session import EnvSession, ResetResult, StepResult, Talk
from spade_runtime.seeds import SEED_END
from spade_runtime.spec import IsolationLevel

_UNSAID = object()
"""Stands in a round's row for a slot that was given no action."""
_ROWS_MAX = 256


class Seat:
    """One environment of a vector.

    Attributes:
        table: the session that plays it.
        slot: its slot there.
        task: the seed of its present episode.
        limit: the run's limit in messages of its present episode.
        info: the info of the last reset.
        over: the episode has ended and a reset is due.
        failed: the last reset brought no episode.
        alive: there is an episode to step.
    """

    def __init__(self, table: Table, slot: int) -> None:
        self.table = table
        self.slot = slot
        self.task = 0
        self.limit: int | None = None
        self.info: dict[str, Any] = {}
        self.over = True
        self.failed = False
        self.alive = False
        self._seed: int | None = None
        self._random: np.random.Generator | None = None

    @property
    def actions(self) -> list[Any]:
        """Raw actions of its present episode, which replay it."""
        return self.table.record.actions(self.slot)

    @property
    def shown(self) -> str:
        """The last observation as the class gave it, without a hint."""
        return self.table.record.shown[self.slot]

    @property
    def observation(self) -> str:
        """The last observation as the agent saw it."""
        return self.table.record.seen[self.slot]

    @property
    def running(self) -> bool:
        """Whether the session has an episode to step."""
        return self.table.session.running(self.slot)

    def seat_seed(self, seed: int | None) -> None:
        """Choose the task of the next reset: a seed that was checked, or the next draw."""
        if seed is None:
            if self._random is None:
                self._random = seeding.np_random(self._seed)[0]
            self.task = int(self._random.integers(SEED_END))
            return
        self.task, self._seed, self._random = seed, seed, None

    def began(self, result: ResetResult, limit: int | None, hint: str | None) -> None:
        """Take the result of a reset."""
        self.table.unsettle()
        self.failed = self.fault is not None
        self.alive = not self.failed
        self.limit, self.info, self.over = limit, result.info, False
        seen = "" if self.failed else with_hint(result.observation, hint)
        self.table.record.begin(self.slot, result.observation, seen)

    def lost(self) -> StepResult:
        """What a step gives where there is no episode to step: the fault that ended it."""
        assert self.fault is not None
        spade = {
            "turn": len(self.actions),
            "solved": False,
            "fault": fault_notes(self.fault),
            "action": None,
        }
        return StepResult("", 0.0, False, True, {"spade": spade})

    @property
    def fault(self) -> EnvFault | None:
        """The fault that ended the episode."""
        return self.table.session.faults[self.slot]


class Turn(NamedTuple):
    """What one step does at one table, by the vector's numbers of the environments.

    Attributes:
        resets: whose episode is over: they are reset.
        steps: who takes a message.
        gone: whose reset had failed, or whose episode was lost.
        where: the numbers of `steps`, as arrays take them best.
    """

    table: Table
    resets: list[int]
    steps: list[int]
    gone: list[int]
    where: Places


class Record:
    """What was said and shown in the slots of one session, kept by round.

    A round appends one row; nobody may ever ask for the actions of one slot, and to hand each its
    own takes as long as the step itself.

    Args:
        slots: how many.

    Attributes:
        shown: each slot's last observation as the class gave it.
        seen: the same as the agent saw it, with its hint.
    """

    def __init__(self, slots: int) -> None:
        self.shown = [""] * slots
        self.seen = [""] * slots
        self._kept: list[list[Any]] = [[] for _ in range(slots)]
        self._rows: list[list[Any]] = []
        self._first = [0] * slots
        """The row that each slot's episode begins with."""

    def begin(self, slot: int, shown: str, seen: str) -> None:
        """A slot's episode begins, which forgets the last one."""
        # Lists of a round may lie here as they came: replaced, never changed.
        self.shown, self.seen = [*self.shown], [*self.seen]
        self.shown[slot], self.seen[slot] = shown, seen
        self._kept[slot], self._first[slot] = [], len(self._rows)

    def add(self, slots: Sequence[int] | None, actions: list[Any], shown: list[str]) -> None:
        """Some slots were given these actions and showed these texts; None stands for all."""
        if slots is None:
            self._rows.append(actions)
            self.shown = self.seen = shown
        else:
            row: list[Any] = [_UNSAID] * len(self.shown)
            texts = [*self.shown]
            seen = texts if self.seen is self.shown else [*self.seen]
            for slot, action, text in zip(slots, actions, shown, strict=True):
                row[slot] = action
                texts[slot] = seen[slot] = text
            self._rows.append(row)
            self.shown, self.seen = texts, seen
        if len(self._rows) >= _ROWS_MAX:
            self._part()

    def actions(self, slot: int) -> list[Any]:
        """The raw actions of a slot's present episode."""
        self._part()
        return self._kept[slot]

    def _part(self) -> None:
        """Give each slot what the rows hold of its present episode."""
        rows, self._rows = self._rows, []
        if rows:
            for kept, said, first in zip(
                self._kept, zip(*rows, strict=True), self._first, strict=True
            ):
                kept += [action for action in said[first:] if action is not _UNSAID]
            self._first = [0] * len(self._first)


class Table:
    """A session, and the environments of the vector that it plays.

    Attributes:
        where: the vector's numbers of its environments, as arrays take them best.
        record: what was said and shown.
    """

    def __init__(self, session: EnvSession) -> None:
        self.session = session
        self.seats: dict[int, Seat] = {}
        self.where: Places = []
        self.record = Record(0)
        self._everyone = Turn(self, [], [], [], [])
        self._ended: list[int] | None = None
        """Whose episodes are over, where all others have one; None where that has to be looked
        at."""

    def seat(self, places: Sequence[int]) -> None:
        """Make the environments with these numbers, one in each slot."""
        self.seats = {place: Seat(self, slot) for slot, place in enumerate(places)}
        self.record = Record(len(places))
        first, end = places[0], places[-1] + 1
        where = slice(first, end) if list(places) == list(range(first, end)) else list(places)
        self.where = where
        self._everyone = Turn(self, [], list(places), [], where)

    def unsettle(self) -> None:
        """Let the next turn look at each environment: one of them may be in any state."""
        self._ended = None

    def turn(self, *, autoreset: bool) -> Turn:
        """What the next step does here.

        Raises:
            EpisodeOver: an episode is over, and a step resets none.
        """
        resets, gone = self._ended, list[int]()
        if resets is None:
            resets = [place for place, seat in self.seats.items() if seat.over]
            gone = [place for place, seat in self.seats.items() if not (seat.over or seat.alive)]
        if resets and not autoreset:
            raise EpisodeOver(
                f"the episode in environment {resets[0]} has ended; reset it with "
                "options={'reset_mask': ...}"
            )
        if not (resets or gone):
            return self._everyone
        idle = {*resets, *gone}
        steps = [place for place in self._everyone.steps if place not in idle]
        return Turn(self, resets, steps, gone, np.array(steps, dtype=np.intp))

    def failed(self, places: Sequence[int]) -> bool:
        """Whether some of these environments' last resets brought no episode."""
        return any(self.seats[place].failed for place in places)

    def moved(self, turn: Turn, moves: Moves) -> None:
        """Let the environments that were stepped take the results; all others have an episode."""
        if turn is self._everyone:
            self.record.add(None, moves.actions, moves.observations)
        else:
            slots = [self.seats[place].slot for place in turn.steps]
            self.record.add(slots, moves.actions, moves.observations)
        self._ended = []
        if moves.ended:
            over = map(or_, moves.terminated, moves.truncated)
            self._ended = [place for place, end in zip(turn.steps, over, strict=True) if end]
            for place in self._ended:
                self.seats[place].over = True

    def took(self, results: Mapping[int, StepResult]) -> list[int]:
        """Let its environments take the results of a step; says whose episodes are over."""
        mine = [(place, seat) for place, seat in self.seats.items() if place in results]
        taken = [results[place] for place, _ in mine]
        self.unsettle()
        self.record.add(
            [seat.slot for _, seat in mine],
            [result.info["spade"]["action"] for result in taken],
            [result.observation for result in taken],
        )
        for (_, seat), result in zip(mine, taken, strict=True):
            seat.over = result.terminated or result.truncated
        return [place for place, seat in mine if seat.over]

    def resetting(
        self, places: Sequence[int], limit: int | None, hints: Sequence[str | None]
    ) -> Talk[list[ResetResult]]:
        """Reset some of the vector's environments, all of them of this table."""
        seats = [self.seats[place] for place in places]
        results = yield from self.session.resetting(
            [seat.task for seat in seats], slots=[seat.slot for seat in seats], max_turns=limit
        )
        for place, seat, result in zip(places, seats, results, strict=True):
            seat.began(result, limit, hints[place])
        return results


def seated(
    references: Sequence[dict[str, Any]], per_child: int, level: IsolationLevel
) -> tuple[list[Table], list[Seat]]:
    """Open what is needed for a vector.

    Args:
        references: one for each environment; equal ones share sessions.
        per_child: most environments of one session.
        level: isolation.

    Returns:
        The sessions, and the environments in order.
    """
    if per_child < 1:
        raise UsageError(f"per_child is at least 1, not {per_child}")
    groups: dict[str, list[int]] = {}
    texts: dict[str, str] = {}
    for place, reference in enumerate(references):
        name = repr(sorted(reference.items()))
        if name not in texts:
            texts[name] = resolve(**reference).text
        groups.setdefault(name, []).append(place)
    tables: list[Table] = []
    seats: dict[int, Seat] = {}
    try:
        for name, places in groups.items():
            for start in range(0, len(places), per_child):
                chunk = places[start : start + per_child]
                table = Table(shared_pool(level).open(texts[name], instances=len(chunk)))
                tables.append(table)
                table.seat(chunk)
                seats |= table.seats
    except BaseException:
        for table in tables:
            table.session.close()
        raise
    return tables, [seats[place] for place in range(len(references))]
