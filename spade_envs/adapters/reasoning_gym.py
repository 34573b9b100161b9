"""Data sets of reasoning-gym as single-turn environments (the package `reasoning-gym`).

A seed determines one task: the first entry of the data set that is made with this seed. The one
message is the answer, in a box or bare; the data set's own scorer pays, and 1.0 solves the task.
"""

from __future__ import annotations

import math
from difflib import get_close_matches
from typing import Any

from spade_envs.adapters import need
from spade_envs.adapters.inprocess import InProcessEnv, Task, open_session
from spade_runtime.errors import UsageError
from spade_runtime.sandbox.session import EnvSession


class ReasoningGymEnv(InProcessEnv):
    r"""One data set of reasoning-gym.

    Args:
        dataset: its name, for example `leg_counting`.
        render_mode: None or `ansi`.
        config: settings of the data set, without `seed` and `size`.

    Raises:
        UsageError: the package is missing, or it has no such data set or setting.

    >>> env = ReasoningGymEnv("leg_counting")
    >>> first, info = env.reset(seed=7)
    >>> env.step("\\boxed{none}")[1:3]
    (0.0, True)
    >>> env.close()
    """

    def __init__(
        self, dataset: str, *, render_mode: str | None = None, config: dict[str, Any] | None = None
    ) -> None:
        self._dataset, self._config = dataset, dict(config or {})
        self._package = _package()
        _check(self._package, dataset, self._config)
        super().__init__(f"reasoning_gym:{dataset}", render_mode=render_mode)
        # EzPickle keeps the arguments of this class, not those of its base.
        self._ezpickle_args = (dataset,)
        self._ezpickle_kwargs = {"render_mode": render_mode, "config": dict(self._config)}

    def _open(self) -> EnvSession:
        def make(seed: int) -> Task:
            made = self._package.create_dataset(self._dataset, seed=seed, size=1, **self._config)
            return _Question(made)

        return open_session(
            make,
            name=id_of(self._dataset),
            kind="game",
            settings=[self._package.__version__, self._config],
            title=self._dataset.replace("_", " ").capitalize(),
        )


class _Question(Task):
    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._entry = dataset[0]

    def begin(self) -> tuple[str, dict[str, Any]]:
        return str(self._entry["question"]), {}

    def move(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        info = {}
        try:
            score = float(self._dataset.score_answer(action, self._entry))
        except Exception as problem:  # scorers raise on answers that they can't read: not right
            score, info = 0.0, {"scorer": f"{type(problem).__name__}: {problem}"[:200]}
        score = min(1.0, max(-1.0, score)) if math.isfinite(score) else 0.0
        said = "That is right." if score == 1.0 else f"That scores {score:g}."
        return said, score, True, False, info

    def solution(self) -> list[Any] | None:
        answer = self._entry.get("answer")
        return None if answer is None else [str(answer)]


def id_of(dataset: str) -> str:
    """The Gymnasium id of a data set."""
    return f"reasoning_gym/{dataset}-v0"


def datasets() -> list[str]:
    """Names of the data sets that are installed, in order."""
    _package()  # its import fills the list
    factory = need("reasoning_gym.factory", "reasoning-gym", "a list of its data sets")
    return sorted(factory.DATASETS)


def register(*names: str, config: dict[str, Any] | None = None) -> list[str]:
    """Register data sets with Gymnasium, all of them where none is named.

    Returns:
        The ids, for `gymnasium.make` and `gymnasium.make_vec`.

    Raises:
        UsageError: the package is missing, or it has no such data set.
    """
    import gymnasium

    package = _package()
    for name in names:
        _check(package, name, {})
    chosen = list(names) or datasets()
    for name in chosen:
        kwargs = {"dataset": name, "config": dict(config or {})}
        there = gymnasium.registry.get(id_of(name))
        if there is None or there.kwargs != kwargs:
            gymnasium.register(
                id_of(name),
                entry_point="spade_envs.adapters.reasoning_gym:ReasoningGymEnv",
                kwargs=kwargs,
            )
    return [id_of(name) for name in chosen]


def _package() -> Any:
    return need("reasoning_gym", "reasoning-gym", "a data set of reasoning-gym")


def _check(package: Any, dataset: str, config: dict[str, Any]) -> None:
    known = datasets()
    if dataset not in known:
        near = get_close_matches(dataset, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {len(known)} of them"
        raise UsageError(f"reasoning-gym has no data set {dataset!r}; {hint}")
    owned = sorted({"seed", "size"} & set(config))
    if owned:
        raise UsageError(f"the seed of a reset decides {' and '.join(owned)}; leave that out")
    if not config:  # some take seconds to make
        return
    try:
        package.create_dataset(dataset, seed=0, size=1, **config)
    except (TypeError, ValueError, AssertionError) as problem:
        raise UsageError(f"{dataset} does not take {config}: {problem}") from problem
