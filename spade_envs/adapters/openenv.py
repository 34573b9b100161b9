"""Serves environments over OpenEnv's protocol (the package `openenv-core`).

One server offers a whole pool, or the suite. A client names the environment in its `reset`; each
client has a session of its own in the sandbox.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import Field

from spade_envs.adapters import lacking
from spade_envs.catalogue import Found, find, hint_of
from spade_envs.pool import Pool
from spade_envs.shared import shared_pool
from spade_runtime.errors import UsageError
from spade_runtime.messages import with_hint
from spade_runtime.sandbox.session import EnvSession, ResetResult, StepResult

try:
    from openenv.core.env_server.http_server import (  # type: ignore[import,unused-ignore]
        create_app,
    )
    from openenv.core.env_server.interfaces import (  # type: ignore[import,unused-ignore]
        Environment,
    )
    from openenv.core.env_server.types import (  # type: ignore[import,unused-ignore]
        Action,
        EnvironmentMetadata,
        Observation,
        State,
    )
except ImportError as missing:
    raise lacking(missing, "openenv-core", "serving over OpenEnv") from missing


class SpadeAction(Action):  # type: ignore[misc,unused-ignore]
    """One message of the agent: text, or tool calls, or both.

    Attributes:
        message: the text, in which a game looks for its boxed action.
        tool_calls: calls in OpenAI's form; where there are any, the text is not searched for more.
    """

    message: str = ""
    tool_calls: list[dict[str, Any]] = Field(default_factory=list)


class SpadeObservation(Observation):  # type: ignore[misc,unused-ignore]
    """What the environment said; `done` and `reward` stand in the base class.

    Attributes:
        text: the observation.
        tools: function schemas of a tool-use environment, at the reset.
        terminated: the environment ended the episode.
        truncated: a limit or a fault ended it.
        info: the environment's own `info`, with the runtime's part under `spade`.
    """

    text: str = ""
    tools: list[dict[str, Any]] = Field(default_factory=list)
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any] = Field(default_factory=dict)


class SpadeServer(Environment):  # type: ignore[misc,unused-ignore]
    """One client's side of the server; make a class for a pool with `server_class`.

    Attributes:
        pool: where environments are looked up; the suite if None.
        default: the environment of a reset that names none.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True
    pool: Pool | None = None
    default: str = ""

    def __init__(self) -> None:
        super().__init__()
        self._session: EnvSession | None = None
        self._name = ""
        self._state = State()

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        environment: str | None = None,
        hinted: bool = False,
        max_turns: int | None = None,
        **_: Any,
    ) -> SpadeObservation:
        """Begin an episode.

        Args:
            seed: decides the task; drawn if None.
            episode_id: kept in the state.
            environment: an id; the default one if None.
            hinted: add the environment's hint to the first observation.
            max_turns: a limit below the environment's own.
        """
        name = environment or self._name or self.default
        found = find(name, self.pool)
        session = self._opened(name, found)
        chosen = secrets.randbelow(2**31) if seed is None else seed
        start = session.reset([chosen], slots=[0], max_turns=max_turns)[0]
        self._state = State(
            episode_id=episode_id, step_count=0, environment=session.spec.id, seed=chosen
        )
        return self._begun(start, hint_of(found) if hinted else None)

    def step(self, action: SpadeAction, timeout_s: float | None = None, **_: Any) -> Any:
        """Take one message of the agent; the sandbox's own limits of time hold."""
        if self._session is None:
            raise UsageError("no episode was begun; call reset first")
        message: Any = action.message
        if action.tool_calls:
            message = {
                "role": "assistant",
                "content": action.message,
                "tool_calls": action.tool_calls,
            }
        result = self._session.step([message], slots=[0])[0]
        self._state.step_count += 1
        return self._moved(result)

    @property
    def state(self) -> Any:
        """Episode id, number of messages, environment and seed."""
        return self._state

    def get_metadata(self) -> Any:
        """What a client may know of this server."""
        return EnvironmentMetadata(
            name="spade-envs",
            description="Environments as text games and tool desks, run in a sandbox.",
        )

    def close(self) -> None:
        """End the client's session."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _opened(self, name: str, found: Found) -> EnvSession:
        if self._session is None or self._name != name:
            self.close()
            self._session = shared_pool().open(found.path)
            self._name = name
        return self._session

    def _begun(self, start: ResetResult, hint: str | None) -> SpadeObservation:
        fault = start.info["spade"]["fault"]
        info = {key: value for key, value in start.info.items() if key != "spade"}
        runtime = {key: value for key, value in start.info["spade"].items() if key != "tools"}
        return SpadeObservation(
            text=with_hint(start.observation, hint) if fault is None else "",
            tools=start.info["spade"].get("tools", []),
            done=fault is not None,
            truncated=fault is not None,
            info={**info, "spade": runtime},
        )

    def _moved(self, result: StepResult) -> SpadeObservation:
        return SpadeObservation(
            text=result.observation,
            reward=float(result.reward),
            done=result.terminated or result.truncated,
            terminated=result.terminated,
            truncated=result.truncated,
            info=result.info,
        )


def server_class(pool: str | Path | None = None, default: str | None = None) -> type[SpadeServer]:
    """A server class for one pool, or for the suite.

    Args:
        pool: directory of the pool; the suite if None.
        default: the environment of a reset that names none; the first one by default.

    Raises:
        UsageError: no such pool, it is empty, or it has no such environment.
    """
    opened = Pool(pool) if pool is not None else None
    first = default or _first(opened)
    find(first, opened)
    return type("SpadePoolServer", (SpadeServer,), {"pool": opened, "default": first})


def make_app(
    pool: str | Path | None = None, default: str | None = None, *, sessions: int = 64
) -> Any:
    """A FastAPI application that serves a pool, or the suite, to up to `sessions` clients."""
    factory: Callable[[], SpadeServer] = server_class(pool, default)
    return create_app(
        factory, SpadeAction, SpadeObservation, env_name="spade", max_concurrent_envs=sessions
    )


def _first(pool: Pool | None) -> str:
    if pool is None:
        from spade_envs import suite

        return next(iter(suite.specs().values())).id
    known = pool.index.ids()
    if not known:
        raise UsageError(f"the pool {pool.root} is empty; there is nothing to serve")
    return known[0][0]
