"""Environments written for GEM, among ours (the package `gem-llm`).

A class written for GEM is a source in the `gem` dialect: `source_of` names its file, which
`spade_envs.register` takes into the sandbox. `FromGem` plays one in this process instead, where it
needs files or packages that the sandbox does not have.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from spade_envs.adapters import need
from spade_envs.adapters.inprocess import InProcessEnv, Task, open_session
from spade_runtime.dialects import GemGame
from spade_runtime.errors import UsageError
from spade_runtime.sandbox.session import EnvSession

TURNS_MAX = 100


def source_of(env_id: str) -> Path:
    """The file of an environment that is registered with GEM, a source in the `gem` dialect.

    Raises:
        UsageError: GEM has no such environment, or no file holds it.
    """
    entry = _registered(env_id).entry_point
    if isinstance(entry, str):
        module, _, name = entry.partition(":")
        entry = getattr(need(module, "gem-llm", f"the environment {env_id}"), name)
    file = inspect.getsourcefile(entry)
    if file is None:
        raise UsageError(f"no file holds {env_id}; play it with FromGem({env_id!r})")
    return Path(file)


class FromGem(InProcessEnv):
    """An environment of GEM, played in this process behind Gymnasium's interface.

    Its goal text joins the observation and its rewards keep to [-1, 1], as in the sandbox. GEM's
    games draw from Python's own `random`, which a reset seeds for the whole process: play one at
    a time, or in the sandbox.

    Args:
        env_id: an id that `gem.make` knows.
        render_mode: None or `ansi`.
        config: arguments for `gem.make`, plain JSON.

    Raises:
        UsageError: GEM has no such environment.
    """

    def __init__(
        self, env_id: str, *, render_mode: str | None = None, config: dict[str, Any] | None = None
    ) -> None:
        _registered(env_id)
        self._env_id, self._config = env_id, dict(config or {})
        super().__init__(f"gem:{env_id}", render_mode=render_mode)
        # EzPickle keeps the arguments of this class, not those of its base.
        self._ezpickle_args = (env_id,)
        self._ezpickle_kwargs = {"render_mode": render_mode, "config": dict(self._config)}

    def _open(self) -> EnvSession:
        gem = need("gem", "gem-llm", "an environment of GEM")

        def make() -> Any:
            return gem.make(self._env_id, **self._config)

        limit = int(getattr(make(), "max_turns", 0) or TURNS_MAX)
        return open_session(
            lambda seed: _Game(make, seed),
            name=f"gem/{self._env_id}",
            kind="game",
            settings=self._config,
            title=self._env_id,
            max_turns=max(1, min(limit, TURNS_MAX)),
            dialect="gem",
        )


class _Game(Task):
    def __init__(self, make: Callable[[], Any], seed: int) -> None:
        self._game = GemGame(make)  # type: ignore[arg-type]
        self._seed = seed
        self.move = self._game.step  # type: ignore[method-assign]
        self.close = self._game.close  # type: ignore[method-assign]

    def begin(self) -> tuple[str, dict[str, Any]]:
        observation, info = self._game.reset(self._seed)
        return observation, info


def _registered(env_id: str) -> Any:
    known = need("gem.envs.registration", "gem-llm", "an environment of GEM").ENV_REGISTRY
    need("gem", "gem-llm", "an environment of GEM")  # its import fills the registry
    if env_id not in known:
        near = get_close_matches(env_id, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {len(known)} of them"
        raise UsageError(f"GEM has no environment {env_id!r}; {hint}")
    return known[env_id]
