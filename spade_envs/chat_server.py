"""A model behind any address that speaks the OpenAI chat protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spade_envs.agents import INSTRUCTIONS, AgentSettings, View
from spade_runtime.chat_client import ChatClient, Completion, Patience, key_from
from spade_runtime.errors import ServerError, UsageError
from spade_runtime.validation.text import visible


class ChatServerAgent:
    """Asks a server for each message; the tools travel as function schemas.

    Args:
        url: the base address, commonly ending in `/v1`.
        settings: sampling, model, key and time-outs.
        pause: seconds before the first retry; doubles each time.

    Raises:
        UsageError: no model is named and the server does not list exactly one.
        ServerError: the server can't be reached, or gives no list of models.
    """

    def __init__(self, url: str, settings: AgentSettings, *, pause: float = 1.0) -> None:
        patience = Patience(timeout=settings.timeout, pause=pause)
        self.client = ChatClient(url, key=key_from(settings.key_variable), patience=patience)
        self.settings = settings
        self.model = settings.model or self._only_model()
        self.name = self.model

    def reply(self, views: Sequence[View]) -> list[Any]:
        """Ask for all the views' messages, some at a time.

        Raises:
            ServerError: one of them did not come.
        """
        bodies = [self._body(view) for view in views]
        return [_message(found) for found in self._all(bodies)]

    def _all(self, bodies: list[dict[str, Any]]) -> list[Completion]:
        found = self.client.complete_all(bodies, self.settings.concurrency)
        for error in found:
            if isinstance(error, ServerError):
                raise error
        return [answer for answer in found if isinstance(answer, Completion)]

    def _body(self, view: View) -> dict[str, Any]:
        told = self.settings.system
        if told is None:
            told = INSTRUCTIONS["tool_use" if view.tools else "game"]
        opening = [{"role": "system", "content": told}] if told else []
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [*opening, *view.messages],
            "temperature": self.settings.temperature,
            "top_p": self.settings.top_p,
            "max_tokens": self.settings.max_tokens,
            "seed": view.seed,
        }
        if view.tools:
            body["tools"] = [
                {"type": "function", "function": tool.model_dump(mode="json")}
                for tool in view.tools
            ]
        return body

    def _only_model(self) -> str:
        names = self.client.models()
        if len(names) != 1:
            listing = ", ".join(visible(name, 80) for name in names[:8]) or "none"
            raise UsageError(
                f"{self.client.url} lists these models: {listing}; name one with --model-name NAME"
            )
        return names[0]


def _message(answer: Completion) -> Any:
    if answer.calls:
        return {"role": "assistant", "content": answer.text, "tool_calls": answer.calls}
    return answer.text
