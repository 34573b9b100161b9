"""Wrappers for agents that want more, or less, than the last observation.

All of them record how they were made, so `env.spec` of a wrapped environment still survives JSON
and pickle. `message_prompt` is the text that `MessageWrapper` puts before the first observation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from spade_envs.arguments import checked_hint
from spade_envs.spaces import UnicodeText
from spade_runtime.errors import UsageError

TRANSCRIPT_MAX = 1 << 26

_Env = gymnasium.Env[str, str]
_Wrapper = gymnasium.Wrapper[str, str, str, str]

_GAME = (
    "Think first if you like, then put your action in \\boxed{...}; the last box counts. Without a "
    "box the whole message is the action."
)
_TOOLS = (
    "You work with these tools; each line between the tags is one function:\n"
    "<tools>\n{schemas}\n</tools>\n"
    "To call one, write a block like this, as many as you need (at most 16 a message):\n"
    '<tool_call>\n{{"name": "tool_name", "arguments": {{"argument": "value"}}}}\n</tool_call>'
)


def message_prompt(tools: Sequence[Mapping[str, Any]] | None) -> str:
    r"""Say in words how a message has to be written.

    Args:
        tools: `info["spade"]["tools"]`, or None for a game.

    >>> print(message_prompt(None)[:58])
    Think first if you like, then put your action in \boxed{..
    """
    if not tools:
        return _GAME
    lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    return _TOOLS.format(schemas=lines)


class HintWrapper(_Wrapper, RecordConstructorArgs):
    r"""Gives a hint at every reset that does not bring its own.

    Args:
        env: the environment.
        hint: a text, or True for the hint that comes with the environment.

    >>> import gymnasium, spade_envs
    >>> env = HintWrapper(gymnasium.make("spade/RollingDie-v0"), "Roll north twice.")
    >>> env.reset(seed=1)[0].endswith("\n\nHint: Roll north twice.")
    True
    >>> env.close()
    """

    def __init__(self, env: _Env, hint: str | Literal[True]) -> None:
        if hint is not True:
            checked_hint(hint)
        RecordConstructorArgs.__init__(self, hint=hint)
        gymnasium.Wrapper.__init__(self, env)
        self._hint = hint

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Reset with the hint among the options."""
        return self.env.reset(seed=seed, options={"hint": self._hint, **(options or {})})


class TranscriptWrapper(_Wrapper, RecordConstructorArgs):
    r"""Shows the whole episode so far, instead of the last observation alone.

    Attributes:
        messages: the episode as chat messages, `{"role", "content"}`, whatever is observed. Calls
            that came structured are the assistant's `tool_calls`.

    >>> import gymnasium, spade_envs
    >>> env = TranscriptWrapper(gymnasium.make("spade/RollingDie-v0"))
    >>> first, _ = env.reset(seed=1)
    >>> env.step("north")[0].startswith(first + "\n\n> north\n\n")
    True
    >>> [message["role"] for message in env.messages]
    ['user', 'assistant', 'user']
    >>> env.close()
    """

    def __init__(self, env: _Env) -> None:
        RecordConstructorArgs.__init__(self)
        gymnasium.Wrapper.__init__(self, env)
        self.observation_space = UnicodeText(TRANSCRIPT_MAX)
        self.messages: list[dict[str, Any]] = []
        self._text = ""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin a new transcript."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._text = observation
        self.messages = [{"role": "user", "content": observation}]
        return observation, info

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Add the message and what came of it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        said = action if isinstance(action, str) else json.dumps(action, ensure_ascii=False)
        self._text = f"{self._text}\n\n> {said}\n\n{observation}"
        self.messages.append(_spoken(action))
        self.messages.append({"role": "user", "content": observation})
        return self._text, float(reward), terminated, truncated, info


class MessageWrapper(_Wrapper, RecordConstructorArgs):
    """Tells an agent that has no chat template how to write its messages.

    The first observation begins with the way to write an action; in a tool-use environment with
    the schemas of its tools as text. A hint stays the last block.

    Args:
        env: the environment.
        calls: `text` asks for `<tool_call>` blocks; `structured` tells nothing, for agents whose
            template or API gives them the schemas of `info["spade"]["tools"]`, and takes what they
            return: an OpenAI message, or its `tool_calls` as JSON text.

    >>> import gymnasium, spade_envs
    >>> env = MessageWrapper(gymnasium.make("spade/HerbariumSearch-v0"))
    >>> "<tools>" in env.reset(seed=1)[0]
    True
    >>> env.close()
    """

    def __init__(self, env: _Env, calls: Literal["text", "structured"] = "text") -> None:
        if calls not in ("text", "structured"):
            raise UsageError(f"calls is 'text' or 'structured', not {calls!r}")
        RecordConstructorArgs.__init__(self, calls=calls)
        gymnasium.Wrapper.__init__(self, env)
        self.observation_space = UnicodeText(TRANSCRIPT_MAX)
        self._calls = calls

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Reset, and say how a message is written."""
        observation, info = self.env.reset(seed=seed, options=options)
        tools = info["spade"].get("tools")
        if self._calls == "text" or not tools:
            observation = f"{message_prompt(tools)}\n\n{observation}"
        return observation, info

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take the message; JSON text of a list of calls is read where those are wanted."""
        if self._calls == "structured" and isinstance(action, str):
            action = _from_json(action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward), terminated, truncated, info


def _spoken(action: Any) -> dict[str, Any]:
    if isinstance(action, Mapping) and "role" in action:
        return dict(action)
    if isinstance(action, str):
        return {"role": "assistant", "content": action}
    return {"role": "assistant", "content": None, "tool_calls": action}


def _from_json(text: str) -> Any:
    """The list of calls or the OpenAI message that a text spells, or the text itself."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, list | dict) else text
