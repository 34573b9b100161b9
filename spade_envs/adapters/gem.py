"""Our environments in GEM's form, for programs written for it (the package `gem-llm`).

`spade_envs.adapters.gem_sources` goes the other way.
"""

from __future__ import annotations

import random
from importlib import import_module
from pathlib import Path
from typing import Any

from spade_envs.adapters import lacking
from spade_envs.catalogue import find, hint_of
from spade_envs.pool import Pool
from spade_envs.shared import shared_pool
from spade_envs.wrappers import message_prompt
from spade_runtime.messages import with_hint
from spade_runtime.sandbox.session import SEED_END, EnvSession
from spade_runtime.spec import IsolationLevel

try:
    from gem.core import Env  # type: ignore[import,unused-ignore]
except ImportError as missing:
    raise lacking(missing, "gem-llm", "an environment in GEM's form") from missing


class GemEnv(Env):  # type: ignore[misc,unused-ignore]
    """One of our environments in the sandbox, as GEM's programs know them.

    Messages are text: a game's action stands in a box, tool calls in `<tool_call>` blocks; the
    first observation says so.

    Args:
        name: an id, a class name, a file, or the beginning of a hash in the pool.
        pool: directory of a pool; the suite if None.
        hinted: add the environment's hint to the first observation.
        max_turns: a limit in messages below the environment's own.
        level: isolation.
        seed: decides the tasks of resets without a seed, as `gem.make_vec` gives one.

    Raises:
        UsageError: there is no such environment.
        InvalidEnvironment: a static gate rejects it.
    """

    def __init__(
        self,
        name: str,
        *,
        pool: str | None = None,
        hinted: bool = False,
        max_turns: int | None = None,
        level: IsolationLevel = "strict",
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self._arguments: dict[str, Any] = {
            "name": name,
            "pool": pool,
            "hinted": hinted,
            "max_turns": max_turns,
            "level": level,
            "seed": seed,
        }
        found = find(name, None if pool is None else Pool(pool))
        self._hint = hint_of(found) if hinted else None
        self._session: EnvSession = shared_pool(level).open(found.path)
        spec = self._session.spec
        self.max_turns = min(max_turns or spec.max_turns, spec.max_turns)
        self._random = random.Random(seed)
        self._played: tuple[int, list[Any]] | None = None

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        """Begin the task of a seed.

        Raises:
            EnvFault: the environment failed.
        """
        task = self._random.randrange(SEED_END) if seed is None else seed
        start = self._session.reset([task], max_turns=self.max_turns)[0]
        if self._session.faults[0] is not None:
            raise self._session.faults[0]
        self._played = (task, [])
        said = f"{message_prompt(start.info['spade'].get('tools'))}\n\n{start.observation}"
        return with_hint(said, self._hint), start.info

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take a message; a fault truncates the episode and stands in `info["spade"]`."""
        result = self._session.step([action])[0]
        if self._played is not None:
            self._played[1].append(action)
        return result

    def spawn(self, same_state: bool = False, **kwargs: Any) -> GemEnv:
        """Another instance; with `same_state` in the same place of the same episode.

        Environments are deterministic, so the episode is played again up to there.
        """
        twin = GemEnv(**{**self._arguments, **kwargs})
        if same_state and self._played is not None:
            seed, messages = self._played
            twin.reset(seed)
            for message in messages:
                twin.step(message)
        return twin

    def close(self) -> None:
        """End the child; may be called twice."""
        self._session.close()


def register(*names: str, pool: str | Path | None = None, **options: Any) -> list[str]:
    """Register environments with GEM, for `gem.make` and `gem.make_vec`.

    Args:
        names: as `GemEnv` takes them; all of the pool or suite where none is named.
        pool: directory of a pool; the suite if None.
        options: further arguments of `GemEnv`.

    Returns:
        GEM's ids, which are ours; one that is registered already is left as it is.
    """
    registration = import_module("gem.envs.registration")
    root = None if pool is None else str(Path(pool).resolve())
    opened = None if root is None else Pool(root)
    if names:
        specs = [(find(name, opened).spec, name) for name in names]
        listed = {(spec.id if spec else Path(name).stem): name for spec, name in specs}
    elif opened is not None:
        listed = dict(opened.index.ids())
    else:
        from spade_envs import suite

        listed = {spec.id: spec.id for spec in suite.specs().values()}
    for known, name in listed.items():
        if known not in registration.ENV_REGISTRY:
            where = "spade_envs.adapters.gem:GemEnv"
            registration.register(known, where, name=name, pool=root, **options)
    return list(listed)
