"""BFCL's multi-turn tasks as tool-use environments (the package `bfcl-eval`).

Its backends (a file system, a car, a trading bot, ...) run in this process. A user turn is done
when the state is the one that the reference calls leave and their results have all been seen, which
is BFCL's own check, asked after each call instead of at the end of the turn: a run here is no score
of the leaderboard. A seed picks the task.
"""

from __future__ import annotations

import copy
import json
from functools import cache
from importlib.resources import files
from typing import Any

from spade_envs.adapters import need
from spade_envs.adapters.bfcl_calls import as_calls, as_schema, as_text
from spade_envs.adapters.inprocess import InProcessEnv, Task, open_session
from spade_runtime.dialects import ANSWER
from spade_runtime.errors import UsageError
from spade_runtime.sandbox.session import EnvSession
from spade_runtime.spec import ToolSpec

CATEGORIES = ("base", "long_context")
_BACKENDS = "bfcl_eval.constants.executable_backend_config"
_CHECKER = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker"
_PURPOSE = "a task of BFCL"


class BfclEnv(InProcessEnv):
    """The tasks of one category that use the same backends.

    Args:
        backends: names of BFCL's classes, for example `["TicketAPI", "TravelAPI"]`; the tools are
            theirs.
        category: `base` or `long_context`. The categories that hold functions or parameters back
            ask for turns without a call, which the contract does not know.
        max_turns: a limit in agent messages.
        render_mode: None or `ansi`.

    Attributes:
        tasks: BFCL's ids, in order; a reset with seed s plays number s modulo their count.

    Raises:
        UsageError: the package is missing, or no task uses just these backends.
    """

    def __init__(
        self,
        backends: list[str],
        *,
        category: str = "base",
        max_turns: int = 40,
        render_mode: str | None = None,
    ) -> None:
        self._entries = _entries(category).get(tuple(sorted(backends)), [])
        if not self._entries:
            sets = sorted(" ".join(names) for names in _entries(category))
            raise UsageError(
                f"no task of {category} uses just {' '.join(sorted(backends)) or 'nothing'}; "
                f"sets of backends are: {', '.join(sets)}"
            )
        self._category, self._backends = category, sorted(backends)
        self.tasks = [entry["id"] for entry in self._entries]
        super().__init__(f"bfcl:{category}", max_turns=max_turns, render_mode=render_mode)
        # EzPickle keeps the arguments of this class, not those of its base.
        self._ezpickle_args = (list(backends),)
        self._ezpickle_kwargs = {
            "category": category,
            "max_turns": max_turns,
            "render_mode": render_mode,
        }

    def _open(self) -> EnvSession:
        entries, long = self._entries, self._category == "long_context"
        return open_session(
            lambda seed: _Desk(entries[seed % len(entries)], long=long),
            name=f"bfcl/{self._category}",
            kind="tool_use",
            settings=[self._category, self.tasks],
            title=f"BFCL {self._category}: {', '.join(self._backends)}",
            skill="multi_step_workflows",
            max_turns=self._max_turns or 40,
            tools=_tools(tuple(self._backends)),
            # One to seven turns: as many as this form may have.
            dialect="published",
        )


class _Desk(Task):
    """One task: the agent's backends, and others that play the reference up to each turn."""

    def __init__(self, entry: dict[str, Any], *, long: bool) -> None:
        self._entry = entry
        self._mine = _instances(entry, long=long)
        self._theirs = _instances(entry, long=long)
        self._seen: list[str] = []
        self._wanted: list[str] = []
        self._played = -1

    def begin(self) -> tuple[str, dict[str, Any]]:
        return self.instructions()[0], {"task": self._entry["id"]}

    def instructions(self) -> list[str]:
        return ["\n".join(one["content"] for one in turn) for turn in self._entry["question"]]

    def call(self, name: str, arguments: dict[str, Any], turn: int) -> str:
        self._play_reference(turn)
        if name == ANSWER:
            return "There is nothing to submit; call the tools."
        result = _run(self._mine, name, arguments)
        self._seen.append(result)
        return result

    def done(self, turn: int) -> bool:
        checker = need(_CHECKER, "bfcl-eval", _PURPOSE)
        same = checker.state_checker(self._mine, self._theirs)["valid"]
        return bool(same and checker.response_checker(self._seen, self._wanted, turn)["valid"])

    def solution(self) -> list[Any] | None:
        return [as_calls(turn, self._mine) for turn in self._entry["ground_truth"]]

    def _play_reference(self, turn: int) -> None:
        while self._played < turn:
            self._played += 1
            calls = as_calls(self._entry["ground_truth"][self._played], self._theirs)
            self._wanted = [_run(self._theirs, name, given) for name, given in calls]


def backends(category: str = "base") -> dict[tuple[str, ...], int]:
    """The sets of backends that tasks use, and how many tasks each has.

    Raises:
        UsageError: the package is missing, or there is no such category.
    """
    return {names: len(entries) for names, entries in _entries(category).items()}


@cache
def _entries(category: str) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    if category not in CATEGORIES:
        raise UsageError(f"there is no category {category!r}; there are {', '.join(CATEGORIES)}")
    need("bfcl_eval", "bfcl-eval", _PURPOSE)
    name = f"BFCL_v4_multi_turn_{category}.json"
    answers = {row["id"]: row["ground_truth"] for row in _lines("possible_answer", name)}
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for entry in _lines(name):
        entry["ground_truth"] = answers[entry["id"]]
        if all(entry["ground_truth"]):
            found.setdefault(tuple(sorted(entry["involved_classes"])), []).append(entry)
    return found


@cache
def _tools(names: tuple[str, ...]) -> list[ToolSpec]:
    documents = need(_BACKENDS, "bfcl-eval", _PURPOSE).MULTI_TURN_FUNC_DOC_FILE_MAPPING
    rows = [row for name in names for row in _lines("multi_turn_func_doc", documents[name])]
    return [
        ToolSpec(
            name=row["name"],
            description=row["description"],
            parameters=as_schema(row["parameters"]),
        )
        for row in rows
    ]


def _lines(*path: str) -> list[dict[str, Any]]:
    text = files("bfcl_eval").joinpath("data", *path).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _instances(entry: dict[str, Any], *, long: bool) -> dict[str, Any]:
    config = need(_BACKENDS, "bfcl-eval", _PURPOSE)
    made = {}
    for name in entry["involved_classes"]:
        module = need(config.CLASS_FILE_PATH_MAPPING[name], "bfcl-eval", _PURPOSE)
        made[name] = getattr(module, name)()
        if name not in config.STATELESS_CLASSES:
            scenario = copy.deepcopy(entry["initial_config"].get(name, {}))
            made[name]._load_scenario(scenario, long_context=long)
    return made


def _run(instances: dict[str, Any], name: str, arguments: dict[str, Any]) -> str:
    """Run a tool as BFCL does: what it raises is its result."""
    owner = next(one for one in instances.values() if hasattr(type(one), name))
    try:
        return as_text(getattr(owner, name)(**arguments))
    except Exception as problem:  # the backends' own way to refuse
        return f"Error during execution: {problem}"
