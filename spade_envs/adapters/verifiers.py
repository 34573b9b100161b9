"""A pool's environments as tasks of verifiers (the package `verifiers`, 0.4).

The environment plays the user: its observations are the user's messages, and the return is the
reward. `spade pool export --form verifiers` writes the package that verifiers loads by its name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from spade_envs.adapters import lacking
from spade_envs.catalogue import Found, find, hint_of
from spade_envs.pool import Pool
from spade_envs.pool_index import Query
from spade_envs.shared import shared_pool
from spade_envs.wrappers import message_prompt
from spade_runtime.errors import UsageError
from spade_runtime.messages import with_hint
from spade_runtime.sandbox.session import EnvSession, StepResult

try:
    import verifiers.v1 as vf  # type: ignore[import,unused-ignore]
except ImportError as missing:
    raise lacking(missing, "verifiers", "playing a pool in verifiers") from missing


class SpadeData(vf.TaskData):  # type: ignore[misc,unused-ignore]
    """One task: which environment, and the seed that determines it.

    Attributes:
        sha256: hash of the environment's source in the pool.
        seed: the task's seed.
        hinted: whether the first observation ends with the environment's hint.
        max_turns: a limit in messages below the environment's own.
    """

    sha256: str
    seed: int
    hinted: bool = False
    max_turns: int | None = None


class SpadeTask(vf.Task[SpadeData, vf.State, vf.TaskConfig]):  # type: ignore[misc,unused-ignore]
    """A task; the environment itself scores it while it is played."""

    @property
    def key(self) -> str:
        """The same for the same source, seed and hint, in every run."""
        return f"{self.data.sha256}:{self.data.seed}{':hinted' if self.data.hinted else ''}"


class SpadeConfig(vf.TasksetConfig):  # type: ignore[misc,unused-ignore]
    """What of a pool is played.

    Attributes:
        pool: directory of the pool; an exported package has its own.
        skill: only environments of this skill.
        low: only environments with at least this win rate, where one was measured.
        high: and at most this one.
        seeds: tasks of each environment.
        first_seed: the first seed.
        hinted: add hints to first observations; environments without one are left out.
        max_turns: a limit in messages.
    """

    pool: str | None = None
    skill: str | None = None
    low: float | None = None
    high: float | None = None
    seeds: int = 8
    first_seed: int = 0
    hinted: bool = False
    max_turns: int | None = None


class SpadeTaskset(vf.Taskset[SpadeTask, SpadeConfig]):  # type: ignore[misc,unused-ignore]
    """Every environment of a pool, each with several seeds, in the pool's order.

    Attributes:
        POOL: the pool of a configuration that names none.
    """

    POOL: ClassVar[Path | None] = None

    @property
    def pool(self) -> Pool:
        """The pool.

        Raises:
            UsageError: none is named, or there is none.
        """
        root = self.config.pool or self.POOL
        if root is None:
            raise UsageError("name the pool's directory: --env.taskset.pool DIR")
        return Pool(root)

    def load(self) -> Iterator[SpadeTask]:
        """Yield the tasks."""
        settings = self.config
        band = None
        if settings.low is not None or settings.high is not None:
            band = (settings.low or 0.0, 1.0 if settings.high is None else settings.high)
        pool = self.pool
        for entry in pool.entries(Query(skill=settings.skill, band=band)):
            if settings.hinted and pool.spec(entry.sha256).hint is None:
                continue
            for seed in range(settings.first_seed, settings.first_seed + settings.seeds):
                data = SpadeData(
                    name=f"{entry.id}#{seed}",
                    description=entry.title,
                    sha256=entry.sha256,
                    seed=seed,
                    hinted=settings.hinted,
                    max_turns=settings.max_turns,
                )
                yield SpadeTask(data, settings.task)


class SpadePlayConfig(vf.EnvConfig):  # type: ignore[misc,unused-ignore]
    """The one agent: it talks and runs no code, so that it needs no box of its own."""

    agent: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime={"type": "subprocess"})


class SpadePlay(vf.Env[SpadePlayConfig]):  # type: ignore[misc,unused-ignore]
    """Plays one task: observation, message, observation, until the environment ends it."""

    async def run(self, task: SpadeTask, agents: Any) -> None:
        """Play one episode in a session of its own.

        Raises:
            EnvFault: the environment failed; the episode counts as failed, never as lost.
        """
        found = find(task.data.sha256, self.taskset.pool)
        session = await asyncio.to_thread(shared_pool().open, found.path)
        try:
            await _played(session, found, task, agents.agent)
        finally:
            await asyncio.to_thread(session.close)


async def _played(session: EnvSession, found: Found, task: SpadeTask, agent: Any) -> None:
    total, result = 0.0, None
    start = (
        await asyncio.to_thread(session.reset, [task.data.seed], max_turns=task.data.max_turns)
    )[0]
    _refuse_fault(session)
    tools = start.info["spade"].get("tools")
    said = f"{message_prompt(tools)}\n\n{start.observation}"
    said = with_hint(said, hint_of(found) if task.data.hinted else None)
    async with agent.interaction(task) as interaction:
        segment = await interaction.turn(said)
        while not segment.terminated:
            result = (await asyncio.to_thread(session.step, [segment.last_reply]))[0]
            _refuse_fault(session)
            total += result.reward
            if result.terminated or result.truncated:
                break
            segment = await interaction.turn(result.observation)
    _record(interaction.trace, total, result)


def _refuse_fault(session: EnvSession) -> None:
    fault = session.faults[0]
    if fault is not None:
        raise fault


def _record(trace: Any, total: float, result: StepResult | None) -> None:
    spade = result.info["spade"] if result is not None else {"turn": 0, "solved": False}
    trace.record_reward("episode_return", total, 1.0)
    trace.record_metric("solved", float(spade["solved"]))
    trace.record_metric("messages", float(spade["turn"]))
    if "credit" in spade:
        trace.record_metric("credit", spade["credit"])
