"""Stand-ins for what environments of the other dialects import.

Of GEM its base class and a few helpers, of the published pools their tool base. They are the
project's own and hold what such classes use; no package of these names is imported.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from spade_runtime.authoring import answers_match
from spade_runtime.entropy import Entropy

ObsType = TypeVar("ObsType")
ActType = TypeVar("ActType")
TERMINAL_STATE = "<｜TERMINAL_STATE｜>"


class LanguageGameReward:
    """The rewards that GEM's language games share."""

    success_reward = 1.0
    internal_step_reward = 0.0
    fail_reward = 0.0
    invalid_action_reward = 0.0
    format_error_reward = -0.1


def replacements(entropy: Entropy) -> dict[str, Callable[[], Mapping[str, Any]]]:
    """The names of the stand-ins, by module, made when they are asked for."""
    base: list[type] = []

    def core() -> Mapping[str, Any]:
        # `gem.Env` and `gem.core.Env` are one class.
        if not base:
            base.append(gem_env(entropy))
        return {"Env": base[0], "ObsType": ObsType, "ActType": ActType}

    return {
        "gem": core,
        "gem.core": core,
        "gem.utils": dict,
        "gem.utils.constants": lambda: {
            "TERMINAL_STATE": TERMINAL_STATE,
            "LanguageGameReward": LanguageGameReward,
        },
        "gem.utils.parsing": lambda: {
            "extract_last_boxed_answer": last_box,
            "last_boxed_only_string": last_boxed_text,
            "remove_boxed": without_box,
            "extract_last_tagged_answer": last_tagged,
            "extract_code_from_model": last_code,
        },
        "gem.utils.seeding": lambda: {"set_seed": _seeder(entropy)},
        "tool_use_base_env": lambda: {"ToolUseBaseEnv": ToolUseBaseEnv},
    }


def _seeder(entropy: Entropy) -> Callable[[int | None], None]:
    def set_seed(seed: int | None = None) -> None:
        state = entropy.current
        state.rng.seed(state.fresh() if seed is None else seed)
        if "numpy.random" in sys.modules:
            state.numpy.seed((state.fresh() if seed is None else seed) & 0xFFFFFFFF)

    return set_seed


def gem_env(entropy: Entropy) -> type:
    """GEM's `Env`, whose `reset(seed)` seeds the module-level generators of the instance."""
    set_seed = _seeder(entropy)

    class Env(ABC):
        @abstractmethod
        def step(self, action: Any) -> Any:
            raise NotImplementedError

        @abstractmethod
        def reset(self, seed: int | None = None) -> Any:
            if seed is not None:
                set_seed(seed)

        def sample_random_action(self) -> str:
            raise NotImplementedError

        @property
        def unwrapped(self) -> Any:
            return self

    return Env


def last_boxed_text(text: str) -> str | None:
    r"""The last `\boxed{...}` of a text with its braces, or None.

    >>> last_boxed_text(r"so \boxed{a{b}} it is")
    '\\boxed{a{b}}'
    """
    start = max(text.rfind("\\boxed{"), text.rfind("\\fbox{"))
    depth = 0
    for place in range(start, len(text)) if start >= 0 else ():
        if text[place] == "{":
            depth += 1
        elif text[place] == "}":
            depth -= 1
            if depth == 0:
                return text[start : place + 1]
    return None


def without_box(text: str | None) -> str | None:
    r"""The content of `\boxed{...}`, or None where the text is none.

    >>> without_box(r"\boxed{7}"), without_box("7")
    ('7', None)
    """
    if isinstance(text, str) and text.startswith("\\boxed{") and text.endswith("}"):
        return text[7:-1]
    return None


def last_box(text: str) -> str | None:
    r"""The content of the last `\boxed{...}` of a text, or None.

    >>> last_box(r"\boxed{1} or \boxed{2}"), last_box("none")
    ('2', None)
    """
    return without_box(last_boxed_text(text))


def last_tagged(text: str) -> str | None:
    """The content of the last `<answer>...</answer>`, or None."""
    found = re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)
    return found[-1].strip() if found else None


def last_code(text: str) -> str | None:
    """The last fenced block of code, or None."""
    found = re.findall(r"```(?:\w+)?\n(.*?)```", text, re.DOTALL)
    return found[-1].strip() if found else None


class ToolUseBaseEnv:
    """The base that published tool-use classes extend; `spade_runtime.dialects` plays them.

    A subclass fills `_tools` and `_state` in `reset`, defines one `tool_*` method a tool, and
    perhaps `_user_messages` with one of `_message_criteria` each.
    """

    def __init__(self, max_turns: int = 20, **kwargs: Any) -> None:
        self.max_turns = max_turns
        self.turn_count = 0
        self._tools: dict[str, Any] = {}
        self._state: Any = {}
        self._call_history: list[Any] = []
        self._expected_answer: Any = None
        self.reset()

    def reset(self, seed: int | None = None) -> Any:
        """Set one task up."""
        raise NotImplementedError("a ToolUseBaseEnv defines reset(seed)")

    def solution(self) -> Any:
        """Tell how the task is solved, in prose or as a list."""
        return None

    def get_tools(self) -> list[dict[str, Any]]:
        """The tools in the OpenAI form."""
        return [
            {"type": "function", "function": {"name": name, **tool}}
            for name, tool in self._tools.items()
        ]

    def close(self) -> None:
        """Let go of what the task held."""

    def _obs_suffix(self) -> str:
        return ""

    def _check_answer(self, answer: str) -> bool:
        """Whether a submitted answer is the expected one: as text, or as a number within 0.01."""
        given, expected = str(answer).strip(), str(self._expected_answer).strip()
        if given.lower() == expected.lower():
            return True
        plain = [text.replace("$", "").replace(",", "") for text in (given, expected)]
        return answers_match(plain[0], plain[1], 0.01)
