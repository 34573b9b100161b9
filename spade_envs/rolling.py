"""Rolls an agent through an environment, many episodes side by side, in the sandbox."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from spade_envs.agents import Agent, SolutionAgent, View
from spade_envs.episodes import Episode, Recording
from spade_runtime.errors import UsageError
from spade_runtime.sandbox.session import EnvSession

SEED_LIMIT = 2**31


def derived_seed(label: str, *parts: object) -> int:
    """A reset seed or a message's seed, from SHA-256 of a label and what tells it apart.

    >>> derived_seed("episode", 0, 1) == derived_seed("episode", 0, 1) != derived_seed("episode", 1)
    True
    """
    text = "\0".join([label, *map(str, parts)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % SEED_LIMIT


def episode_seeds(count: int, seed: int = 0) -> list[int]:
    """Reset seeds of a run of `count` episodes; a longer run begins with those of a shorter."""
    return [derived_seed("episode", seed, number) for number in range(count)]


def roll(
    session: EnvSession,
    agent: Agent,
    seeds: Sequence[int],
    *,
    hint: str | None = None,
    max_turns: int | None = None,
) -> Iterator[Episode]:
    """Play one episode a seed, as many at once as the session has instances.

    Args:
        session: an opened environment.
        agent: who plays.
        seeds: one reset seed an episode.
        hint: shown to the agent after the first observation.
        max_turns: a limit below the class's own.

    Yields:
        The episodes in the order of the seeds, those of a round when the round is over.

    Raises:
        UsageError: the solution is to play, and the environment has none.
    """
    for start in range(0, len(seeds), session.instances):
        round_seeds = seeds[start : start + session.instances]
        slots = list(range(len(round_seeds)))
        limit = min(max_turns or session.spec.max_turns, session.spec.max_turns)
        begun = session.reset(round_seeds, slots=slots, max_turns=limit)
        records = [
            Recording(session.spec, seed, result, max_turns=limit, hint=hint, policy=agent.name)
            for seed, result in zip(round_seeds, begun, strict=True)
        ]
        if isinstance(agent, SolutionAgent):
            _play_solutions(session, records)
        else:
            _play(session, agent, records)
        yield from (record.episode() for record in records)


def _play(session: EnvSession, agent: Agent, records: Sequence[Recording]) -> None:
    """Give every open episode its next message until none is open."""
    while waiting := [slot for slot, record in enumerate(records) if not record.over]:
        views = [
            View(
                records[slot].messages,
                session.tools,
                derived_seed("message", records[slot].seed, len(records[slot].rewards)),
            )
            for slot in waiting
        ]
        messages = agent.reply(views)
        results = session.step(messages, slots=waiting)
        for slot, message, result in zip(waiting, messages, results, strict=True):
            records[slot].add(message, result)


def _play_solutions(session: EnvSession, records: Sequence[Recording]) -> None:
    """Send each episode's own solution as raw actions; a tool turn's calls go as one message."""
    open_slots = [slot for slot, record in enumerate(records) if not record.over]
    plans: dict[int, list[Any]] = {}
    for slot, plan in zip(open_slots, session.solution(slots=open_slots), strict=True):
        if plan is None:
            raise UsageError(f"{session.spec.id} has no solution() to play; choose another --model")
        plans[slot] = list(plan)
    while waiting := [slot for slot in plans if plans[slot] and not records[slot].over]:
        actions = [plans[slot].pop(0) for slot in waiting]
        for slot, action, result in zip(
            waiting, actions, session.act(actions, slots=waiting), strict=True
        ):
            records[slot].add(action, result)
