"""Who plays: scripts, a model behind a URL, or a local model that another package brings.

An agent sees conversations and answers each with a message. Models on this machine come through
the entry-point group `spade.policies` (a name and a factory), so that this package needs no torch.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from spade_runtime.errors import UsageError
from spade_runtime.spec import ToolSpec

GROUP = "spade.policies"
SCRIPTED = ("random", "solution", "text:WORDS")
INSTRUCTIONS = {
    "game": "Play this text game as well as you can. You may think first. Close every message with "
    "the action that you choose, written as \\boxed{action}.",
    "tool_use": "Do what the user asks by calling the tools, and no more than that. What you have "
    "not been told, look up. Each new wish comes with the result of a call.",
}

_QUOTED = re.compile(r"'([^'\n]{1,80})'")
_WORD = re.compile(r"[^\s,.;:!?()\[\]{}'\"]+")


class View(NamedTuple):
    """What an agent sees when a message is asked of it.

    Attributes:
        messages: the conversation so far, in OpenAI's form.
        tools: the tools that may be called; empty in a game.
        seed: for this message's own randomness.
    """

    messages: Sequence[dict[str, Any]]
    tools: Sequence[ToolSpec]
    seed: int


class Agent(Protocol):
    """Something that plays.

    Attributes:
        name: as tables and episodes give it.
    """

    name: str

    def reply(self, views: Sequence[View]) -> list[Any]:
        """Answer each view with text, or with an assistant message that has `tool_calls`."""
        ...


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """How a model samples; scripts pay no heed to it.

    Attributes:
        model: the server's name of the model, behind a URL.
        key_variable: environment variable that holds the server's key.
        concurrency: requests in flight.
        timeout: seconds for one request.
        system: what a server's model is told before it plays; None for `INSTRUCTIONS`.
    """

    temperature: float = 0.6
    top_p: float = 0.95
    max_tokens: int = 1024
    model: str | None = None
    key_variable: str = "OPENAI_API_KEY"
    concurrency: int = 8
    timeout: float = 120.0
    system: str | None = None


AgentFactory = Callable[[str, AgentSettings], Agent]
"""What an entry point names: from what follows the colon and the settings to an agent."""


class TextAgent:
    """Says the same words every time."""

    def __init__(self, words: str) -> None:
        self.words = words
        self.name = f"text:{words[:24]}"

    def reply(self, views: Sequence[View]) -> list[Any]:
        """Give the words for each view."""
        return [self.words] * len(views)


class RandomAgent:
    """Repeats commands and words of what it was told, or calls tools with what fits their schema.

    The floor of every comparison: it understands nothing.
    """

    name = "random"

    def reply(self, views: Sequence[View]) -> list[Any]:
        """Draw a message for each view from its seed."""
        return [self._one(view, random.Random(view.seed)) for view in views]

    def _one(self, view: View, rng: random.Random) -> Any:
        if view.tools:
            tool = rng.choice(list(view.tools))
            words = _WORD.findall(" ".join(str(m.get("content")) for m in view.messages))
            arguments = _draw(tool.parameters, words or ["x"], rng)
            call = {"name": tool.name, "arguments": arguments}
            return {"role": "assistant", "content": "", "tool_calls": [call]}
        first, last = (str(view.messages[place]["content"]) for place in (0, -1))
        commands = _QUOTED.findall(first)
        words = _WORD.findall(last) or ["nothing"]
        return rng.choice(commands if commands and rng.random() < 0.5 else words)


class SolutionAgent:
    """Plays the environment's own `solution()`; the runner asks the session for its actions."""

    name = "solution"

    def reply(self, views: Sequence[View]) -> list[Any]:
        """Refuse: a solution is no matter of conversations.

        Raises:
            UsageError: always.
        """
        raise UsageError("the solution policy plays whole environments, not conversations")


def make_agent(name: str, settings: AgentSettings | None = None) -> Agent:
    """Build the agent that a command line names.

    Args:
        name: `random`, `solution`, `text:WORDS`, the address of an OpenAI-compatible server, the
            directory of a local model, `hf:NAME` for one of a model hub, or another name of the
            group `spade.policies`, with what its factory wants after a colon.
        settings: how a model samples.

    Raises:
        UsageError: nothing has that name.
    """
    settings = settings or AgentSettings()
    head, _, rest = name.partition(":")
    if name == "random":
        return RandomAgent()
    if name == "solution":
        return SolutionAgent()
    if head == "text":
        return TextAgent(rest)
    if head in ("http", "https"):
        from spade_envs.chat_server import ChatServerAgent

        return ChatServerAgent(name, settings)
    brought = {entry.name: entry for entry in entry_points(group=GROUP)}
    if head in brought:
        return _load(brought[head], rest, settings)
    if Path(name).is_dir() and "hf" in brought:
        return _load(brought["hf"], name, settings)
    raise UsageError(_unknown(name, sorted(brought)))


def _load(entry: EntryPoint, argument: str, settings: AgentSettings) -> Agent:
    try:
        factory: AgentFactory = entry.load()
        return factory(argument, settings)
    except ModuleNotFoundError as missing:
        raise UsageError(
            f"the model {entry.name!r} needs the package {missing.name!r}; "
            "install it with: pip install 'spade-envs[train]'"
        ) from missing


def _unknown(name: str, brought: list[str]) -> str:
    if name.startswith((".", "/", "~")) or "/" in name:
        return _no_folder(name)
    known = [*SCRIPTED, *brought]
    near = get_close_matches(name, ["random", "solution", *brought], n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
    return (
        f"there is no model {name!r}; {hint} (a server is given by its address, such as "
        "http://localhost:8000/v1, a local model by its directory, a model hub's by hf:NAME)"
    )


def _no_folder(name: str) -> str:
    what = "a file" if Path(name).is_file() else "not there"
    hub = "" if name.startswith((".", "/", "~")) else f"; a model of a model hub is hf:{name}"
    return f"there is no model {name!r}: a local model is a folder, and this is {what}{hub}"


def _draw(schema: dict[str, Any], words: Sequence[str], rng: random.Random) -> Any:
    """A value that fits a tool's schema, of the forms that the contract derives."""
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "anyOf" in schema:
        return _draw(rng.choice(schema["anyOf"]), words, rng)
    kind = schema.get("type", "string")
    if kind == "object":
        needed = set(schema.get("required", ()))
        fields = {
            key: part
            for key, part in schema.get("properties", {}).items()
            if key in needed or rng.random() < 0.5
        }
        return {key: _draw(part, words, rng) for key, part in fields.items()}
    if kind == "array":
        return [_draw(schema.get("items", {}), words, rng) for _ in range(rng.randint(0, 3))]
    numbers = [int(word) for word in words if re.fullmatch("-?[0-9]{1,9}", word)] or [1]
    plain: dict[str, Any] = {
        "integer": rng.choice(numbers),
        "number": float(rng.choice(numbers)),
        "boolean": rng.random() < 0.5,
        "null": None,
    }
    return plain.get(kind, rng.choice(words))
