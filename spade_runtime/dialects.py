"""The published and the gem form, translated to the contract inside the child.

Contract.md, Dialects. Whole classes stay as they are: an instance is wrapped, and the wrapper has
the contract's interface. Games get `reset(seed) -> (str, dict)`, the five values of `step` in plain
Python types, and a `solution()` that is a list or None. Published tool-use classes get user turns
with criteria, tools that are dispatched by name, and the schemas of their `_tools`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, Literal

from spade_runtime.authoring import Turn, rendered
from spade_runtime.foreign_library import TERMINAL_STATE

Dialect = Literal["contract", "published", "gem"]
Problem = tuple[str, str]

# The name by which a submitted answer reaches a published tool-use class. No tool can have it.
ANSWER = "<answer>"
EPISODE_OVER = "The episode is over."
_PROBE_SEEDS = (0, 1, 2)
_USUAL = {"complexity": 1, "max_turns": 20}
_NAMES = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def adapt(cls: type, *, dialect: str, kind: str) -> Callable[[], Any]:
    """Give what makes an instance with the contract's interface.

    Args:
        cls: the environment class.
        dialect: `contract` classes are returned as they are.
        kind: `game` or `tool_use`.
    """
    if dialect == "published":
        if kind == "tool_use":
            return lambda: PublishedTools(cls)
        return lambda: ForeignGame(cls)
    if dialect == "gem":
        return lambda: GemGame(cls)
    return cls


def tools(cls: type) -> tuple[list[dict[str, Any]], list[Problem]]:
    """The schemas of a published tool-use class, and where they disagree with its methods.

    Such a class fills `_tools` when it resets, so an instance is made and reset. One that can't be
    has no schemas here, and shows its fault when it is played.

    Returns:
        The functions, each `{"name", "description", "parameters"}`, and the problems as
        `(code, message)`: SPD501 where a schema is none, SPD502 where schema and method disagree.
    """
    for seed in _PROBE_SEEDS:
        try:
            probe = PublishedTools(cls)
            probe.reset(seed)
        except Exception:
            # What it raises is reported by the gate that plays it, with its seed.
            continue
        return probe.schemas()
    return [], []


def plain(value: Any) -> Any:
    """A numpy scalar as the Python value that it holds; anything else as it is."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return value.item()
    return value


class ForeignGame:
    """A game of the published form behind the contract's interface.

    Args:
        cls: the class, whose constructor may reset by itself.
    """

    def __init__(self, cls: type) -> None:
        self.inner: Any = _made(cls)

    def reset(self, seed: int | None = None) -> Any:
        """Reset the class; a bare text becomes the contract's pair."""
        return self.beginning(_reset(self.inner, seed))

    def beginning(self, result: Any) -> Any:
        """What `reset` gave, as the contract has it."""
        return (result, {}) if isinstance(result, str) else result

    def step(self, action: str) -> Any:
        """Take one action; numpy scalars become plain values, a missing info an empty one."""
        result = self.inner.step(action)
        if not isinstance(result, tuple) or len(result) != 5:
            return result
        observation, reward, terminated, truncated, info = result
        return (
            observation,
            plain(reward),
            plain(terminated),
            plain(truncated),
            {} if info is None else _plain_info(info),
        )

    def solution(self) -> Any:
        """The winning actions; a prose solution counts as none."""
        method = getattr(self.inner, "solution", None)
        found = method() if callable(method) else None
        return None if isinstance(found, str) else found

    def close(self) -> None:
        """Close the class, where it can be closed."""
        method = getattr(self.inner, "close", None)
        if callable(method):
            method()


class GemGame(ForeignGame):
    """A game written for GEM's `Env`: the goal text in `info["suffix"]` joins the observation."""

    def beginning(self, result: Any) -> Any:
        """What `reset` gave, as the contract has it."""
        result = super().beginning(result)
        if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict):
            return _joined(result[0], _plain_info(result[1]))
        return result

    def step(self, action: str) -> Any:
        """Take one action."""
        result = super().step(action)
        if isinstance(result, tuple) and len(result) == 5 and isinstance(result[4], dict):
            observation, info = _joined(result[0], result[4])
            return (observation, *result[1:4], info)
        return result


def _joined(observation: Any, info: dict[Any, Any]) -> tuple[Any, dict[Any, Any]]:
    """Join the goal text to the observation, and let no control token through."""
    suffix = info.get("suffix")
    rest = {key: value for key, value in info.items() if key != "suffix"}
    if type(observation) is not str:
        return observation, rest
    if observation == TERMINAL_STATE:
        return EPISODE_OVER, rest
    if isinstance(suffix, str) and suffix.strip():
        observation = f"{observation}\n{suffix}" if observation else suffix
    return observation, rest


def _plain_info(info: Any, depth: int = 0) -> Any:
    """An info with its numpy scalars and arrays as plain values, some levels deep."""
    if "numpy" not in sys.modules or depth > 8:
        return info
    if type(info) is dict:
        return {plain(k): _plain_info(v, depth + 1) for k, v in info.items()}
    if type(info) in (list, tuple):
        return [_plain_info(item, depth + 1) for item in info]
    if type(info).__module__ == "numpy" and hasattr(info, "tolist"):
        return info.tolist()
    return info


def _parameters(called: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """The parameters of a class or method; None where it does not tell them."""
    try:
        if sys.version_info >= (3, 14):
            # Annotations are evaluated as they are read, and may name what does not exist.
            import annotationlib

            form = annotationlib.Format.FORWARDREF
            return list(inspect.signature(called, annotation_format=form).parameters.values())
        return list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):
        return None


def _made(cls: type) -> Any:
    """Make an instance; arguments that these forms may demand get their usual values."""
    parameters = _parameters(cls)
    if parameters is None:
        return cls()
    demanded = [p.name for p in parameters if p.kind in _NAMES and p.default is p.empty]
    return cls(**{name: _USUAL[name] for name in demanded if name in _USUAL})


def _reset(inner: Any, seed: int | None) -> Any:
    """Reset with the seed where the class takes one; it was seeded before in any case."""
    parameters = _parameters(inner.reset)
    if parameters is None:
        return inner.reset(seed=seed)
    if any(p.kind is p.VAR_KEYWORD or p.name == "seed" for p in parameters):
        return inner.reset(seed=seed)
    return inner.reset(seed) if any(p.default is p.empty for p in parameters) else inner.reset()


class PublishedTools:
    """A published tool-use class behind the interface that the runtime plays `ToolEnv` by.

    The class itself reveals the next instruction inside its tools' results (`_advance_if_done`);
    here the parent does, so that text is dropped and the class only keeps count. An answer that
    `_check_answer` takes completes every turn. Where the answer is the mere `done`, the last
    criterion completes the last turn as well.

    Attributes:
        state: the class's `_state`.
    """

    def __init__(self, cls: type) -> None:
        self.inner: Any = _made(cls)
        self._answered = False
        self._spade_turns: list[Turn] = []

    @property
    def state(self) -> Any:
        """What tools change and criteria read."""
        return getattr(self.inner, "_state", None)

    def reset(self, seed: int | None = None) -> Any:
        """Set one task up; the first observation is the class's own."""
        result = _reset(self.inner, seed)
        result = (result, {}) if isinstance(result, str) else result
        self._answered = False
        messages = getattr(self.inner, "_user_messages", None)
        if not isinstance(messages, (list, tuple)) or not messages:
            messages = [result[0] if isinstance(result, tuple) and result else ""]
        self._spade_turns = [
            Turn(text, self._criterion(place)) for place, text in enumerate(messages)
        ]
        self._silence()
        return result

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Run one declared tool, or take an answer under the name `ANSWER`.

        Raises:
            LookupError: the class declares no tool of that name.
        """
        inner = self.inner
        inner.turn_count = getattr(inner, "turn_count", 0) + 1
        if name == ANSWER:
            return self._answer(arguments.get("answer", ""))
        method = getattr(inner, f"tool_{name}", None)
        if name not in inner._tools or not callable(method):
            raise LookupError(f"there is no tool {name!r}")
        before = self._current()
        result = method(**arguments)
        text = rendered(result)
        history = getattr(inner, "_call_history", None)
        if isinstance(history, list):
            history.append({"name": name, "arguments": arguments, "result": text})
        if self._current() == before and before < self._last() and self._holds(before):
            inner._current_msg = before + 1
        return text

    def solution(self) -> Any:
        """The calls of each turn, where the class gives a list; prose counts as none."""
        method = getattr(self.inner, "solution", None)
        found = method() if callable(method) else None
        return None if isinstance(found, str) else found

    def close(self) -> None:
        """Close the class, where it can be closed."""
        method = getattr(self.inner, "close", None)
        if callable(method):
            method()

    def schemas(self) -> tuple[list[dict[str, Any]], list[Problem]]:
        """The tools that the task declares, and where schema and method disagree."""
        functions: list[dict[str, Any]] = []
        problems: list[Problem] = []
        messages = getattr(self.inner, "_user_messages", None)
        criteria = getattr(self.inner, "_message_criteria", None)
        if isinstance(messages, (list, tuple)) and isinstance(criteria, (list, tuple)):
            wanted, there = len(messages), len(criteria)
            if wanted != there:
                what = f"{wanted} user messages have {there} criteria; each needs its own"
                problems.append(("SPD504", what))
        declared = getattr(self.inner, "_tools", None)
        if not isinstance(declared, dict) or not declared:
            problems.append(("SPD501", "reset leaves no tools: _tools has to be a dict of schemas"))
            return [], problems
        for name, tool in declared.items():
            parameters = tool.get("parameters") if isinstance(tool, dict) else None
            if parameters is None and isinstance(tool, dict):
                parameters = {"type": "object", "properties": {}}
            if not isinstance(name, str) or not isinstance(parameters, dict):
                problems.append(("SPD501", f"tool {name!r}: its schema is no object"))
                continue
            problems += self._disagreements(name, parameters)
            description = tool.get("description", "")
            functions.append(
                {
                    "name": name,
                    "description": description if isinstance(description, str) else "",
                    "parameters": parameters,
                }
            )
        return functions, problems

    def _disagreements(self, name: str, parameters: dict[str, Any]) -> list[Problem]:
        method = getattr(self.inner, f"tool_{name}", None)
        if not callable(method):
            return [("SPD502", f"tool {name}: the class has no method tool_{name}")]
        properties = parameters.get("properties")
        required = parameters.get("required", [])
        if not isinstance(properties, dict) or not isinstance(required, (list, tuple)):
            return [("SPD501", f"tool {name}: its schema needs properties, and required as a list")]
        taken = _parameters(method)
        if taken is None:
            return []
        named = {p.name for p in taken if p.kind in _NAMES}
        needed = {p.name for p in taken if p.kind in _NAMES and p.default is p.empty}
        problems = []
        if not any(p.kind is p.VAR_KEYWORD for p in taken):
            problems = [
                f"the schema has {argument!r}, which the method does not take "
                f"(its arguments: {', '.join(sorted(named)) or 'none'})"
                for argument in properties
                if argument not in named
            ]
        problems += [
            f"the method needs {argument!r}, which the schema does not require"
            for argument in sorted(needed - set(required))
        ]
        return [("SPD502", f"tool {name}: {problem}") for problem in problems]

    def _silence(self) -> None:
        """Let the class count its turns, and keep the instructions to the parent."""
        advance = getattr(self.inner, "_advance_if_done", None)
        if not callable(advance):
            return

        def counted(*args: Any, **values: Any) -> str:
            text = advance(*args, **values)
            # What follows the last instruction tells how to hand in the answer.
            wanted = self._current() >= self._last() and not self._done_suffices()
            return text if wanted and isinstance(text, str) else ""

        self.inner._advance_if_done = counted

    def _current(self) -> int:
        current = getattr(self.inner, "_current_msg", 0)
        return current if isinstance(current, int) else 0

    def _last(self) -> int:
        return len(self._spade_turns)

    def _holds(self, turn: int) -> bool:
        criteria = getattr(self.inner, "_message_criteria", None)
        if not isinstance(criteria, (list, tuple)) or turn >= len(criteria):
            return False
        return bool(criteria[turn](self.state))

    def _criterion(self, turn: int) -> Callable[[Any], bool]:
        def done(state: Any) -> bool:
            reached = self._current() > turn or (self._current() == turn and self._holds(turn))
            if self._answered or turn < self._last() - 1:
                return self._answered or reached
            return reached and self._done_suffices()

        return done

    def _done_suffices(self) -> bool:
        expected = getattr(self.inner, "_expected_answer", None)
        return str(expected).strip().lower() == "done" and bool(self.inner._check_answer("done"))

    def _answer(self, answer: Any) -> str:
        if self.inner._check_answer(answer if isinstance(answer, str) else str(answer)):
            self._answered = True
            return "Correct."
        turn = self._current()
        if turn < self._last() and self._last() > 1:
            return f"Not yet: instruction {turn + 1} of {self._last()} is still open."
        return "That is not the answer."
