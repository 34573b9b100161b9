"""Environments for the `environment_factory` of TRL's `GRPOTrainer` (the package `trl`, 1.16).

TRL makes an object for each rollout, calls `reset` with the columns of the row, offers the public
methods of its class to the model as tools, and asks `get_reward` at the end. A tool-use environment
offers its own tools; a game offers one, `act`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spade_envs.adapters.trl_tools import method
from spade_envs.catalogue import find, hint_of
from spade_envs.pool import Pool
from spade_envs.shared import shared_pool
from spade_runtime.errors import UsageError
from spade_runtime.messages import with_hint
from spade_runtime.sandbox.session import EnvSession, StepResult
from spade_runtime.spec import IsolationLevel, ToolSpec

OVER = "The episode is over."
_ACT = ToolSpec(
    name="act",
    description="Take your next action and see what comes of it.",
    parameters={
        "type": "object",
        "properties": {
            "action": {"type": "string", "description": "the action, written as the game asks"}
        },
        "required": ["action"],
    },
)


class Rollout:
    """One rollout of one environment; `environment` makes the class for it.

    Attributes are private throughout: TRL would offer what is public to the model.
    """

    _path: Path
    _hint: str | None
    _max_turns: int | None
    _level: IsolationLevel

    def __init__(self) -> None:
        self._session: EnvSession | None = None
        self._reward: float | None = 0.0
        self._over = True

    def reset(self, **row: Any) -> str:
        """Begin an episode; TRL adds what this returns to the row's last message.

        Args:
            row: the row's columns; `seed` decides the task.

        Raises:
            UsageError: the row has no seed: the rollouts of a group would play different tasks.
        """
        if row.get("seed") is None:
            raise UsageError(
                "the row has no column seed, so the rollouts of a group would play different "
                "tasks; make the data set from spade_envs.adapters.trl.rows(...)"
            )
        if self._session is None:
            self._session = shared_pool(self._level).open(self._path)
            weakref.finalize(self, self._session.close)
        start = self._session.reset([row["seed"]], max_turns=self._max_turns)[0]
        fault = start.info["spade"]["fault"]
        self._over = fault is not None
        self._reward = None if fault else 0.0
        return OVER if fault else with_hint(start.observation, self._hint)

    def get_reward(self) -> float | None:
        """The sum of the episode's rewards; None, which TRL leaves out, after a fault."""
        return self._reward

    def _use(self, tool: str, arguments: dict[str, Any]) -> str:
        if self._over or self._session is None:
            return OVER
        game = self._session.spec.kind == "game"
        message: Any = [{"name": tool, "arguments": arguments}]
        if game:
            message = self._boxed(str(arguments.get("action", "")))
        return self._told(self._session.step([message])[0])

    def _boxed(self, action: str) -> str:
        """The action as its class's dialect reads it in a message."""
        assert self._session is not None
        if self._session.spec.dialect == "contract" or "\\boxed" in action:
            return action
        return f"\\boxed{{{action}}}"

    def _told(self, result: StepResult) -> str:
        self._over = result.terminated or result.truncated
        if result.info["spade"]["fault"] is not None:
            self._reward = None
            return OVER
        assert self._reward is not None
        self._reward += result.reward
        return f"{result.observation}\n\n{OVER}" if self._over else result.observation


def environment(
    name: str,
    *,
    pool: str | Path | None = None,
    hinted: bool = False,
    max_turns: int | None = None,
    level: IsolationLevel = "strict",
) -> type[Rollout]:
    """The class of an environment's rollouts, to be passed as `environment_factory`.

    Args:
        name: an id, a class name, a file, or the beginning of a hash in the pool.
        pool: directory of a pool; the suite if None.
        hinted: add the environment's hint to the first observation.
        max_turns: a limit in calls below the environment's own.
        level: isolation.

    Raises:
        UsageError: there is no such environment or hint, or TRL can't offer one of its tools.
        InvalidEnvironment: a static gate rejects it.
        EnvFault: it does not load.
    """
    found = find(name, None if pool is None else Pool(pool))
    hint = hint_of(found) if hinted else None
    if hinted and hint is None:
        raise UsageError(f"{name} has no hint; leave hinted out")
    with shared_pool(level).open(found.path) as session:
        spec = session.spec
    methods = {tool.name: method(tool, spec.id) for tool in spec.tools or [_ACT]}
    own = {"_path": found.path, "_hint": hint, "_max_turns": max_turns, "_level": level}
    title = spec.id.partition("/")[2].rpartition("-v")[0].replace(".", "_")
    return type(f"{title}Env", (Rollout,), {"__doc__": spec.title, **own, **methods})


def environments(
    names: Iterable[str], *, pool: str | Path | None = None, **options: Any
) -> dict[str, type[Rollout]]:
    """Several environments, for the `environment_factory` of a run that mixes them.

    Args:
        names: as `environment` takes them; they are the values of the rows' `environment` column.
        pool: directory of a pool; the suite if None.
        options: further options of `environment`.
    """
    return {name: environment(name, pool=pool, **options) for name in names}


def rows(names: Iterable[str], seeds: Iterable[int], *, prompt: str = "") -> list[dict[str, Any]]:
    """Rows for a `datasets.Dataset`, one for each environment and seed.

    Args:
        names: keys of `environments`; with a single factory the column is not read.
        seeds: seeds of the tasks, integers in [0, 2^31).
        prompt: text before the first observation.

    >>> rows(["spade/RollingDie-v0"], [7])[0]["environment"]
    'spade/RollingDie-v0'
    """
    listed = list(seeds)
    message = {"role": "user", "content": prompt}
    return [
        {"prompt": [dict(message)], "environment": name, "seed": seed}
        for name in names
        for seed in listed
    ]
