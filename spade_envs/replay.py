"""Plays recorded episodes again and finds the first difference, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from spade_envs.episodes import Episode
from spade_runtime.errors import UsageError
from spade_runtime.sandbox.session import EnvSession, ResetResult, StepResult


class Difference(NamedTuple):
    """Where a replay leaves its recording.

    Attributes:
        turn: 0 for the reset, then the number of the action, from 1.
        field: what differs: `observation`, `reward`, `terminated`, `truncated`, `solved` or
            `fault`.
        recorded: the value in the recording.
        replayed: the value now.
    """

    turn: int
    field: str
    recorded: Any
    replayed: Any

    def text(self) -> str:
        """One line for people."""
        where = "the reset" if self.turn == 0 else f"turn {self.turn}"
        return f"{where}: {self.field} was {self.recorded!r:.160}, now {self.replayed!r:.160}"


def replay(session: EnvSession, episodes: Sequence[Episode]) -> list[Difference | None]:
    """Play episodes of one source again.

    Args:
        session: the environment, opened from the recorded source.
        episodes: recordings of it.

    Returns:
        For each episode its first difference, or None where all is the same.

    Raises:
        UsageError: an episode was recorded with another source.
    """
    for episode in episodes:
        if episode.sha256 != session.spec.sha256:
            raise UsageError(
                f"the episode was recorded with the source {episode.sha256[:12]}, "
                f"not with {session.spec.sha256[:12]}: give that source with --source or --pool"
            )
    found: list[Difference | None] = []
    for start in range(0, len(episodes), session.instances):
        found += _round(session, episodes[start : start + session.instances])
    return found


def _round(session: EnvSession, episodes: Sequence[Episode]) -> list[Difference | None]:
    """Play as many episodes as there are slots, side by side."""
    found: list[Difference | None] = [None] * len(episodes)
    for limit in sorted({episode.max_turns or 0 for episode in episodes}):
        slots = [slot for slot, one in enumerate(episodes) if (one.max_turns or 0) == limit]
        begun = session.reset(
            [episodes[slot].seed for slot in slots], slots=slots, max_turns=limit or None
        )
        for slot, start in zip(slots, begun, strict=True):
            found[slot] = _compare_start(episodes[slot], start)
    turn = 0
    while waiting := [
        slot
        for slot, episode in enumerate(episodes)
        if found[slot] is None and turn < episode.turns
    ]:
        actions = [episodes[slot].actions[turn] for slot in waiting]
        results = session.act(actions, slots=waiting)
        turn += 1
        for slot, result in zip(waiting, results, strict=True):
            found[slot] = _compare(episodes[slot], turn, result)
    return found


def _compare_start(episode: Episode, start: ResetResult) -> Difference | None:
    rows = [
        ("fault", _recorded_fault(episode, 0), _fault(start.info)),
        ("observation", episode.observations[0], start.observation),
    ]
    return _first(0, rows)


def _compare(episode: Episode, turn: int, result: StepResult) -> Difference | None:
    last = turn == episode.turns
    # A training run cuts episodes also for reasons of its own, such as a full context.
    cut = last and episode.step is not None and episode.truncated and not result.truncated
    # A line that others wrote may say nothing of it, and a turn with a fault solves nothing.
    judged = last and episode.fault is None and "solved" in episode.model_fields_set
    solved = bool(result.info.get("spade", {}).get("solved"))
    rows = [
        ("fault", _recorded_fault(episode, turn), _fault(result.info)),
        ("observation", episode.observations[turn], result.observation),
        ("reward", episode.rewards[turn - 1], float(result.reward)),
        ("terminated", episode.terminated and last, result.terminated),
        ("truncated", episode.truncated and last and not cut, result.truncated),
        ("solved", episode.solved if judged else solved, solved),
    ]
    return _first(turn, rows)


def _recorded_fault(episode: Episode, turn: int) -> str | None:
    fault = episode.fault
    if fault is None or fault.host or turn != episode.turns:
        return None
    return f"{fault.kind} {fault.code}"


def _fault(info: dict[str, Any]) -> str | None:
    fault = info.get("spade", {}).get("fault")
    return f"{fault['kind']} {fault['code']}" if fault else None


def _first(turn: int, rows: Sequence[tuple[str, Any, Any]]) -> Difference | None:
    return next((Difference(turn, name, old, new) for name, old, new in rows if old != new), None)
