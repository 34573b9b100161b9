"""The terminal player: a person reads observations and types messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from spade_envs.agents import Agent, SolutionAgent, View
from spade_envs.catalogue import turns_text
from spade_envs.commands.common import counted
from spade_envs.episodes import Recording
from spade_envs.gallery import call_text
from spade_envs.rolling import derived_seed
from spade_envs.typed_calls import signature, typed_call
from spade_runtime.errors import UsageError
from spade_runtime.messages import with_hint
from spade_runtime.sandbox.session import EnvSession, StepResult
from spade_runtime.validation.text import visible

HELP = """\
Type a message and press Enter. A line that begins with a colon is for the player:
  :help    this text
  :hint    the hint, where there is one
  :again   the last observation once more
  :quit    leave"""
TOOLS_HELP = """
  :tools   the tools and their arguments
Type calls: lend(tag='K12', days=3), or: lend K12 days=3"""


class Player:
    """Plays one episode in the terminal.

    Args:
        session: an opened environment with at least one instance.
        console: where to write.
        ask: gives the person's next line; raises EOFError at the end of input.
    """

    def __init__(
        self, session: EnvSession, console: Console, ask: Callable[[str], str] = input
    ) -> None:
        self.session = session
        self.console = console
        self.ask = ask

    def play(
        self,
        seed: int,
        agent: Agent | None = None,
        *,
        hint: str | None = None,
        max_turns: int | None = None,
    ) -> Recording:
        """Play from a reset to the end, or until the person leaves.

        Args:
            seed: of the reset.
            agent: who plays; a person if None.
            hint: what `:hint` tells a person, or an agent reads from the start.
            max_turns: a limit below the class's own.
        """
        spec = self.session.spec
        limit = min(spec.max_turns, max_turns or spec.max_turns)
        start = self.session.reset([seed], slots=[0], max_turns=limit)[0]
        name = "person" if agent is None else agent.name
        record = Recording(spec, seed, start, max_turns=limit, hint=hint, policy=name)
        self._head(seed, limit, helps=agent is None)
        first = start.observation if agent is None else with_hint(start.observation, hint)
        self._observe(first, 0, limit)
        plan = self._plan(agent) if record.fault is None else []
        while not record.over:
            if isinstance(agent, SolutionAgent):
                if not plan:
                    break
                message = plan.pop(0)
                result = self.session.act([message], slots=[0])[0]
            else:
                message = self._message(record, agent, hint)
                if message is None:
                    break
                result = self.session.step([message], slots=[0])[0]
            if agent is not None:
                self._say(message)
            record.add(message, result)
            self._after(result, record.last is not None and len(record.rewards), limit)
        self._end(record)
        return record

    def _plan(self, agent: Agent | None) -> list[Any]:
        if not isinstance(agent, SolutionAgent):
            return []
        plan = self.session.solution(slots=[0])[0]
        if plan is None:
            raise UsageError(f"{self.session.spec.id} has no solution() to play")
        return list(plan)

    def _message(self, record: Recording, agent: Agent | None, hint: str | None) -> Any:
        """The next message of a person or an agent; None where a person leaves."""
        if agent is not None:
            seed = derived_seed("message", record.seed, len(record.rewards))
            return agent.reply([View(record.messages, self.session.tools, seed)])[0]
        while True:
            try:
                line = self.ask("> ")
            except EOFError:
                return None
            if line.strip() == ":quit":
                return None
            if line.startswith(":"):
                self._command(line.strip(), record, hint)
            elif not line.strip():
                self._note("Type a message, or :help.")
            elif (message := self._typed(line)) is not None:
                return message

    def _typed(self, line: str) -> Any:
        """A person's line as a message; None, after a word of help, where it is no call."""
        text = line.encode("utf-8", "replace").decode()
        if not self.session.tools or text.lstrip().startswith(("<tool_call>", "{")):
            return text
        try:
            return {
                "role": "assistant",
                "content": "",
                "tool_calls": [typed_call(text, self.session.tools)],
            }
        except UsageError as error:
            self._note(str(error))
            return None

    def _command(self, line: str, record: Recording, hint: str | None) -> None:
        if line == ":hint":
            self._note(f"Hint: {hint}" if hint else "There is no hint for this environment.")
        elif line == ":tools":
            self._tools()
        elif line == ":again":
            self.console.print(_safe(record.observations[-1]))
        else:
            told = HELP + (TOOLS_HELP if self.session.tools else "")
            self._note(told if line == ":help" else f"There is no command {line}.\n{told}")

    def _head(self, seed: int, limit: int, *, helps: bool) -> None:
        spec = self.session.spec
        self.console.print(Text(visible(spec.title), style="bold"))
        kind = "tool use" if spec.kind == "tool_use" else "game"
        facts = f"{spec.id}  {kind}, {spec.skill}, {turns_text(limit)}, seed {seed}"
        self._note(facts + ("  (:help for help)" if helps else ""))
        if self.session.tools:
            self._tools()

    def _tools(self) -> None:
        if not self.session.tools:
            self._note("This is a game: there are no tools, any text is a message.")
        for tool in self.session.tools:
            self._indented(Text(visible(signature(tool)), style="cyan"), 2)
            if tool.description:
                self._indented(Text(visible(tool.description), style="dim"), 6)

    def _indented(self, text: Text, columns: int) -> None:
        """Print a text whose every line begins in the same column."""
        self.console.print(Padding(text, (0, 0, 0, columns), expand=False))

    def _observe(self, text: str, turn: int, limit: int) -> None:
        title = "start" if turn == 0 else f"turn {turn} of {limit}"
        self.console.print(Panel(_safe(text), title=title, title_align="left"))

    def _say(self, message: Any) -> None:
        self.console.print(Text("> " + message_text(message), style="green"))

    def _after(self, result: StepResult, turn: int, limit: int) -> None:
        if result.observation:
            self._observe(result.observation, turn, limit)
        if result.reward and not result.terminated:
            self._note(f"reward {result.reward:+g}")

    def _end(self, record: Recording) -> None:
        turns, total = len(record.rewards), sum(record.rewards)
        episode = record.episode()
        if episode.fault is not None:
            fault = episode.fault
            line = f"The environment failed: {fault.code or fault.kind} {fault.message}"
            self.console.print(Text(visible(line, 600), style="red"))
        elif not record.over:
            self._note(f"Left after {counted(turns, 'turn')}.")
        elif episode.solved:
            line = f"Solved in {counted(turns, 'turn')}, rewards {total:g} in all."
            self.console.print(Text(line, style="bold green"))
        else:
            why = "out of turns" if episode.truncated else "the episode is over"
            line = f"Not solved: {why} after {counted(turns, 'turn')}, rewards {total:g} in all."
            self.console.print(Text(line, style="yellow"))

    def _note(self, text: str) -> None:
        self.console.print(Text(text, style="dim"))


def message_text(message: Any) -> str:
    """A message as people read it: its text, and its calls as calls."""
    if isinstance(message, list):
        return "\n> ".join(call_text(call) for call in message)
    if not isinstance(message, dict):
        return "\n".join(visible(line, 2000) for line in str(message).split("\n"))
    parts = [str(message["content"])] if message.get("content") else []
    parts += [_any_call(call) for call in message.get("tool_calls") or ()]
    return "\n> ".join(visible(part, 2000) for part in parts) or "(nothing)"


def _any_call(call: Any) -> str:
    """A call in either structured form; one of no known form as it is."""
    inner = call.get("function", call) if isinstance(call, dict) else call
    if isinstance(inner, dict) and isinstance(inner.get("arguments"), dict) and "name" in inner:
        return call_text(inner)
    if isinstance(inner, dict) and "name" in inner:
        return f"{inner['name']}({inner.get('arguments') or ''})"
    return str(call)


def _safe(text: str) -> Text:
    """Text of an environment: no markup, no control characters."""
    return Text("\n".join(visible(line, 4000) for line in text.split("\n")))
