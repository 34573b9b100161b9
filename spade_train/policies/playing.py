"""Models on this machine as agents of `spade run` and `spade play`.

The entry-point group `spade.policies` names the factories, so that the packages which play need
no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spade_envs.agents import AgentSettings, View
from spade_runtime.errors import UsageError
from spade_runtime.messages import parse_tool_calls, split_results
from spade_train.policies.base import Message, Policy, Sampling
from spade_train.prompts import Style, agent_messages


class ModelAgent:
    """Plays with a policy, through the prompts that training uses.

    Args:
        policy: any policy whose replies are text.
        settings: how it samples.
        style: of the prompt that opens an episode.
    """

    def __init__(self, policy: Policy, settings: AgentSettings, style: Style) -> None:
        self.policy = policy
        self.name = policy.name
        self.style: Style = style
        self.sampling = Sampling(
            temperature=settings.temperature,
            top_p=settings.top_p,
            max_tokens=settings.max_tokens,
        )

    def reply(self, views: Sequence[View]) -> list[Any]:
        """Answer the views in one batch; a conversation that fills the context gets no answer."""
        limit = getattr(self.policy, "context_tokens", None)
        prompts = [self._prompt(view) for view in views]
        open_ones = [
            place for place, ids in enumerate(prompts) if limit is None or len(ids) < limit
        ]
        replies = [""] * len(views)
        generations = self.policy.generate(
            [prompts[place] for place in open_ones],
            self.sampling,
            [views[place].seed for place in open_ones],
        )
        for place, generation in zip(open_ones, generations, strict=True):
            replies[place] = self.policy.reply_text(generation)
        return replies

    def _prompt(self, view: View) -> list[int]:
        tools = [tool.model_dump(mode="json") for tool in view.tools]
        first = str(view.messages[0]["content"])
        opening = agent_messages(self.style, first, kind="tool_use" if tools else "game")
        messages = [*opening, *_heard(view.messages[1:], bool(tools))]
        return self.policy.encode_chat(messages, tools=tools or None)


def _heard(messages: Sequence[Message], has_tools: bool) -> list[Message]:
    """The rest of a conversation, where results of calls are told by tools, one a call."""
    heard: list[Message] = []
    calls = 0
    for message in messages:
        if message["role"] == "assistant":
            calls = len(parse_tool_calls(message["content"])) if has_tools else 0
            heard.append(message)
        elif calls:
            parts = split_results(str(message["content"]), calls)
            heard += [{"role": "tool", "content": part} for part in parts if part]
        else:
            heard.append(message)
    return heard


def tiny_agent(argument: str, settings: AgentSettings) -> ModelAgent:
    """The embedded policy, or one that `spade tiny build` wrote to the folder `argument`."""
    from spade_train import tiny
    from spade_train.trained import find

    if argument and find(argument) is not None:
        return hf_agent(argument, settings)
    return ModelAgent(tiny.load(argument or None), settings, "compact")


def hf_agent(argument: str, settings: AgentSettings) -> ModelAgent:
    """A causal model of `transformers` in the folder `argument`, or a hub model of that name.

    A run's folder, or a checkpoint's, gives the trained model behind the prompts of its run.

    Raises:
        UsageError: no model is named, or a run's checkpoint can't be used.
    """
    if not argument:
        raise UsageError("name the model after a colon, for example hf:./my-model")
    from spade_train.policies.hf import HFPolicy
    from spade_train.trained import find

    trained = find(argument)
    style: Style = "full" if trained is None else trained.config.prompt_style
    return ModelAgent(HFPolicy.load(argument), settings, style)
