"""`SpadeVectorEnv`: many environments stepped as groups, their children computing side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from spade_envs import vector_arguments as given
from spade_envs.arguments import TEXT_MAX, checked_options, checked_turns
from spade_envs.env import printable
from spade_envs.restore import restore
from spade_envs.seats import Seat, Table, Turn, seated
from spade_envs.spaces import UnicodeText
from spade_envs.vector_infos import Flags, Notes, gather
from spade_runtime.errors import EpisodeOver, UsageError
from spade_runtime.sandbox.facilities import check_level
from spade_runtime.sandbox.session import EnvSession, Moves, StepResult, Talk
from spade_runtime.sandbox.together import in_turn, together
from spade_runtime.spec import IsolationLevel

Texts = tuple[str, ...]
_CLOSED = "this vector is closed; make another"


class SpadeVectorEnv(VectorEnv[Texts, Sequence[Any], npt.NDArray[Any]]):
    """Environments of one class, or of several, behind Gymnasium's vector interface.

    Up to `per_child` instances of a class share a child and are stepped by one message. A fault
    ends its own environment alone: truncated, with `infos["spade"]["fault"]`; where it took the
    child with it, the others are brought back by replaying their actions in a fresh one.

    Args:
        num_envs: how many.
        source: reference to one class for all, as for `SpadeEnv`.
        path: the same.
        pool: the same.
        sha256: the same.
        members: instead of one reference, a list of registered ids or references, one for each
            environment.
        max_turns: a limit in messages below each class's own.
        max_episode_steps: the same, under Gymnasium's name.
        render_mode: None or `ansi`.
        level: isolation, as for `SpadeEnv`.
        autoreset_mode: `NextStep` (the step after an end takes no action and gives the reset's
            observation; mask it from training), `SameStep` (the reset's observation comes with the
            end, the last one in `infos["final_obs"]`) or `Disabled` (use `reset_mask`).
        per_child: instances that share a child.

    Attributes:
        restored: environments brought back after another one took their child with it.

    Raises:
        UsageError: arguments that can't be.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}

    def __init__(
        self,
        num_envs: int = 1,
        *,
        source: str | None = None,
        path: str | None = None,
        pool: str | None = None,
        sha256: str | None = None,
        members: Sequence[str | Mapping[str, Any]] | None = None,
        max_turns: int | None = None,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        level: IsolationLevel = "strict",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        per_child: int = 64,
    ) -> None:
        super().__init__()
        named = {"source": source, "path": path, "pool": pool, "sha256": sha256}
        reference = {key: value for key, value in named.items() if value is not None}
        self._references = given.references(num_envs, reference, members, level)
        self.num_envs = num_envs
        self.render_mode = given.render_mode(render_mode)
        self.autoreset_mode = given.mode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = UnicodeText(TEXT_MAX)
        self.single_action_space = UnicodeText(TEXT_MAX)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        limits = [limit for limit in (max_turns, max_episode_steps) if limit is not None]
        self._max_turns = min(limits) if limits else None
        check_level(level)
        self._level = level
        self._per_child = per_child
        self._tables: list[Table] | None = None
        self._seats: list[Seat] = []
        self._in_order = False
        self._notes = Notes(num_envs)
        self._no_hints: list[str | None] = [None] * num_envs
        self.restored = 0

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Texts, dict[str, Any]]:
        """Begin episodes.

        Args:
            seed: a list with a seed for each environment (the same one for a group that plays one
                task), an integer `s` for `s, s + 1, ...`, or None.
            options: `reset_mask`, a boolean array of the environments to reset; `hint`, one text
                for all, True for the environments' own, or a list; `max_turns`.

        Returns:
            Observations of all environments, and the infos of those that were reset.

        Raises:
            UsageError: seeds or options that can't be, or the vector is closed; every episode is
                as it was.
            InvalidEnvironment: a class is refused.
            HostError: the machine is at fault.
        """
        if self.closed:
            raise UsageError(_CLOSED)
        count = self.num_envs
        seeds, wanted = given.seeds(seed, count), checked_options(options, given.OPTIONS)
        chosen = given.chosen(wanted.get("reset_mask"), count, begun=self._tables is not None)
        hints = given.hints(wanted.get("hint"), self._references)
        limit = checked_turns(wanted.get("max_turns", self._max_turns))
        self._sit_down()
        for place in chosen:
            self._seats[place].seat_seed(seeds[place])
        together(
            [
                (table.session, in_turn(table.resetting(places, limit, hints)))
                for table, places in self._by_table(chosen)
            ]
        )
        self._look_after()
        return self._observations(), gather(
            {place: self._seats[place].info for place in chosen}, self.num_envs
        )

    def step(
        self, actions: Sequence[Any]
    ) -> tuple[Texts, npt.NDArray[np.float64], Flags, Flags, dict[str, Any]]:
        """Take one message for each environment.

        Raises:
            UsageError: not one message for each environment, or one that is no message; nothing
                has been played then.
            EpisodeOver: with autoreset disabled, an environment's episode has ended.
            HostError: the machine is at fault.
        """
        if type(actions) not in (list, tuple) or len(actions) != self.num_envs:
            actions = given.actions(actions, self.num_envs)
        if not self._seats:
            if self.closed:
                raise UsageError(_CLOSED)
            raise EpisodeOver("no episode was begun; call reset first")
        tables = self._tables or []
        autoreset = self.autoreset_mode is AutoresetMode.NEXT_STEP
        turns = [table.turn(autoreset=autoreset) for table in tables]
        results = self._play(turns, actions)
        lost = [table for table in tables if table.session.loss is not None]
        if not lost and (moved := self._moved(turns, results)) is not None:
            return self._columns(turns, moved)
        outcomes = self._outcomes(turns, results)
        resets = [place for turn in turns for place in turn.resets]
        if lost:
            outcomes |= restore(self, tables, outcomes, actions, resets)
            self._look_after()
        infos = {place: outcome.info for place, outcome in outcomes.items()}
        infos |= {place: self._seats[place].info for place in resets}
        return self._finished(outcomes, infos)

    def render(self) -> tuple[str, ...] | None:
        """What each environment showed last, in `ansi` mode."""
        if self.render_mode != "ansi":
            return None
        return tuple(printable(seat.observation) for seat in self._seats)

    @property
    def cpu_seconds(self) -> float:
        """Processor time that the children have used."""
        return sum(table.session.cpu_seconds for table in self._tables or ())

    def close_extras(self, **kwargs: Any) -> None:
        """End the children."""
        for table in self._tables or ():
            table.session.close()
        self._tables, self._seats = None, []

    # --- one step ----------------------------------------------------------------------------

    def _play(
        self, turns: list[Turn], actions: Sequence[Any]
    ) -> list[Moves | list[StepResult] | None]:
        """What each table's steps gave; None where there were none."""
        if len(turns) == 1 and not turns[0].resets and len(turns[0].steps) == self.num_envs:
            return [turns[0].table.session.moves(actions)]
        # Messages first: one that can't be played is refused before a seed is drawn for a reset.
        moving = [self._moving(turn, actions) if turn.steps else None for turn in turns]
        talks: list[tuple[EnvSession, Talk[Any]]] = []
        for (table, resets, _, _, _), move in zip(turns, moving, strict=True):
            parts: list[Talk[Any]] = [] if move is None else [move]
            if resets:
                for place in resets:
                    self._seats[place].seat_seed(None)
                parts.insert(0, table.resetting(resets, self._max_turns, self._no_hints))
            talks.append((table.session, parts[0] if len(parts) == 1 else in_turn(*parts)))
        return [
            None if not turn.steps else found[-1] if turn.resets else found
            for turn, found in zip(turns, together(talks), strict=True)
        ]

    def _moving(self, turn: Turn, actions: Sequence[Any]) -> Talk[Moves | list[StepResult]]:
        """One table's part of the messages, as a talk."""
        table, steps, slots = turn.table, turn.steps, None
        if len(steps) < len(table.seats):
            slots = [self._seats[place].slot for place in steps]
        if len(steps) < self.num_envs:
            actions = [actions[place] for place in steps]
        return table.session.moving(actions, slots=slots)

    def _moved(
        self, turns: list[Turn], results: list[Moves | list[StepResult] | None]
    ) -> list[tuple[Turn, Moves]] | None:
        """The rounds of a step in which nothing went wrong, None of any other.

        None too where an end asks for its own info and the next reset's, and of tools.
        """
        same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
        moved: list[tuple[Turn, Moves]] = []
        for turn, result in zip(turns, results, strict=True):
            if turn.gone or (turn.resets and turn.table.failed(turn.resets)):
                return None
            if isinstance(result, Moves):
                if result.ended and same_step:
                    return None
                moved.append((turn, result))
            elif result is not None or not turn.table.session.is_game:
                return None
        return moved

    def _columns(
        self, turns: list[Turn], moved: list[tuple[Turn, Moves]]
    ) -> tuple[Texts, npt.NDArray[np.float64], Flags, Flags, dict[str, Any]]:
        """The results of a step in which nothing went wrong, taken over column by column."""
        rewards = self._notes.zeros()
        terminated, truncated = self._notes.flags(), self._notes.flags()
        for turn, moves in moved:
            turn.table.moved(turn, moves)
            if moves.paid:
                rewards[turn.where] = moves.rewards
            if moves.ended:
                terminated[turn.where] = moves.terminated
                truncated[turn.where] = moves.truncated
        rows = {place: self._seats[place].info for turn in turns for place in turn.resets}
        infos = self._notes.joined([(turn.where, moves) for turn, moves in moved], rows)
        return self._observations(), rewards, terminated, truncated, infos

    def _outcomes(
        self, turns: list[Turn], results: list[Moves | list[StepResult] | None]
    ) -> dict[int, StepResult]:
        """The result of each environment that was not reset."""
        outcomes: dict[int, StepResult] = {}
        for turn, result in zip(turns, results, strict=True):
            if result is not None:
                rows = result.rows() if isinstance(result, Moves) else result
                outcomes |= zip(turn.steps, rows, strict=True)
            outcomes |= {place: self._seats[place].lost() for place in turn.gone}
        return outcomes

    def _look_after(self) -> None:
        """Note whose episode went down with a child that another one took."""
        for seat in self._seats:
            seat.table.unsettle()
            if not seat.over:
                seat.alive = seat.running

    def _finished(
        self, outcomes: dict[int, StepResult], infos: dict[int, dict[str, Any]]
    ) -> tuple[Texts, npt.NDArray[np.float64], Flags, Flags, dict[str, Any]]:
        rewards = [0.0] * self.num_envs
        terminated, truncated = [False] * self.num_envs, [False] * self.num_envs
        for place, outcome in outcomes.items():
            _, rewards[place], terminated[place], truncated[place], _ = outcome
        ended = [place for table in self._tables or () for place in table.took(outcomes)]
        if ended and self.autoreset_mode is AutoresetMode.SAME_STEP:
            infos |= self._reset_ended(ended, infos)
        infos = dict(sorted(infos.items()))
        return (
            self._observations(),
            np.array(rewards, dtype=np.float64),
            np.array(terminated, dtype=np.bool_),
            np.array(truncated, dtype=np.bool_),
            gather(infos, self.num_envs),
        )

    def _reset_ended(
        self, ended: list[int], infos: dict[int, dict[str, Any]]
    ) -> dict[int, dict[str, Any]]:
        finals = {
            place: {"final_obs": self._seats[place].observation, "final_info": infos[place]}
            for place in ended
        }
        for place in ended:
            self._seats[place].seat_seed(None)
        together(
            [
                (table.session, in_turn(table.resetting(places, self._max_turns, self._no_hints)))
                for table, places in self._by_table(ended)
            ]
        )
        return {place: {**self._seats[place].info, **finals[place]} for place in ended}

    # --- arguments ---------------------------------------------------------------------------

    def _sit_down(self) -> None:
        if self._tables is None:
            self._tables, self._seats = seated(self._references, self._per_child, self._level)
            self._in_order = all(isinstance(table.where, slice) for table in self._tables)

    def _by_table(self, chosen: Sequence[int]) -> list[tuple[Table, list[int]]]:
        by_table = [
            (table, [place for place in chosen if self._seats[place].table is table])
            for table in self._tables or ()
        ]
        return [(table, places) for table, places in by_table if places]

    def _observations(self) -> Texts:
        if self._in_order:
            return tuple(chain.from_iterable([table.record.seen for table in self._tables or ()]))
        return tuple([seat.observation for seat in self._seats])
