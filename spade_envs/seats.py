"""Where the environments of a vector sit: which session plays them, in which slot, how far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium.utils import seeding

from spade_envs.references import resolve
from spade_envs.shared import shared_pool
from spade_envs.vector_infos import Places
from spade_runtime.errors import EnvFault, EpisodeOver, UsageError
from spade_runtime.messages import with_hint
from spade_runtime.sandbox.book import Moves, fault_notes
from spade_runtime.sandbox.session import SEED_END, EnvSession, ResetResult, StepResult, Talk
from spade_runtime.spec import IsolationLevel


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
        self._actions: list[Any] = []
        self._shown = ""
        self._observation = ""
        self._seed: int | None = None
        self._random: np.random.Generator | None = None

    @property
    def actions(self) -> list[Any]:
        """Raw actions of its present episode, which replay it."""
        self.table.settle()
        return self._actions

    @property
    def shown(self) -> str:
        """The last observation as the class gave it, without a hint."""
        self.table.settle()
        return self._shown

    @property
    def observation(self) -> str:
        """The last observation as the agent saw it."""
        self.table.settle()
        return self._observation

    @property
    def running(self) -> bool:
        """Whether the session has an episode to step."""
        return self.table.session.running(self.slot)

    def seat_seed(self, seed: int | None) -> None:
        """Choose the task of the next reset: the seed, or the next draw after the last one.

        Raises:
            UsageError: a seed out of range.
        """
        if seed is None:
            if self._random is None:
                self._random = seeding.np_random(self._seed)[0]
            self.task = int(self._random.integers(SEED_END))
            return
        if not 0 <= seed < SEED_END:
            raise UsageError(f"a seed is an integer from 0 to {SEED_END - 1}, not {seed}")
        self.task, self._seed, self._random = seed, seed, None

    def began(self, result: ResetResult, limit: int | None, hint: str | None) -> None:
        """Take the result of a reset."""
        self.table.settle()
        self.table.calm = False
        self.failed = self.fault is not None
        self.alive = not self.failed
        self.limit, self._actions, self.info, self.over = limit, [], result.info, False
        self._shown = result.observation
        self._observation = "" if self.failed else with_hint(result.observation, hint)

    def took(self, result: StepResult) -> bool:
        """Take the result of a step; says whether the episode is over."""
        observation, _, terminated, truncated, info = result
        self.table.settle()
        self._shown = self._observation = observation
        self._actions.append(info["spade"]["action"])
        self.over = terminated or truncated
        self.table.calm = False
        return self.over

    def moved(self, actions: Sequence[str], observation: str) -> None:
        """Take the actions of rounds, and what the last of them showed."""
        self._actions += actions
        self._shown = self._observation = observation

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


class Table:
    """A session, and the environments of the vector that it plays.

    Attributes:
        where: the vector's numbers of its environments, as arrays take them best.
        calm: every environment here has an episode to step; False where that has to be looked at.
    """

    def __init__(self, session: EnvSession) -> None:
        self.session = session
        self.seats: dict[int, Seat] = {}
        self.where: Places = []
        self.calm = False
        self._everyone = Turn(self, [], [], [], [])
        self._rounds: list[list[str]] = []
        self._latest: list[str] = []

    def seat(self, places: Sequence[int]) -> None:
        """Make the environments with these numbers, one in each slot."""
        self.seats = {place: Seat(self, slot) for slot, place in enumerate(places)}
        first, end = places[0], places[-1] + 1
        where = slice(first, end) if list(places) == list(range(first, end)) else list(places)
        self.where = where
        self._everyone = Turn(self, [], list(places), [], where)

    def turn(self, *, autoreset: bool) -> Turn:
        """What the next step does here.

        Raises:
            EpisodeOver: an episode is over, and a step resets none.
        """
        if self.calm:
            return self._everyone
        resets: list[int] = []
        steps: list[int] = []
        gone: list[int] = []
        for place, seat in self.seats.items():
            if not seat.over:
                (steps if seat.alive else gone).append(place)
            elif autoreset:
                resets.append(place)
            else:
                raise EpisodeOver(
                    f"the episode in environment {place} has ended; reset it with "
                    "options={'reset_mask': ...}"
                )
        self.calm = not resets and not gone
        return self._everyone if self.calm else Turn(self, resets, steps, gone, steps)

    def failed(self, places: Sequence[int]) -> bool:
        """Whether some of these environments' last resets brought no episode."""
        return any(self.seats[place].failed for place in places)

    def moved(self, turn: Turn, moves: Moves) -> None:
        """Let the environments that were stepped take the results."""
        seats = self.seats
        if turn is self._everyone:
            # Kept as columns: nobody may ever ask, and seat by seat it takes as long as a step.
            self._rounds.append(moves.actions)
            self._latest = moves.observations
        else:
            self.settle()
            for place, observation, action in zip(
                turn.steps, moves.observations, moves.actions, strict=True
            ):
                seats[place].moved([action], observation)
        if moves.ended:
            self.calm = False
            for place, terminated, truncated in zip(
                turn.steps, moves.terminated, moves.truncated, strict=True
            ):
                seats[place].over = terminated or truncated

    def settle(self) -> None:
        """Give each seat its part of the rounds that are kept as columns."""
        if self._rounds:
            rounds, self._rounds = self._rounds, []
            actions = zip(*rounds, strict=True)
            for seat, mine, shown in zip(self.seats.values(), actions, self._latest, strict=True):
                seat.moved(mine, shown)

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
