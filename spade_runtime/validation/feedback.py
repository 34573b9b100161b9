"""What an environment's texts give away or smuggle in: tracebacks, code, control tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spade_runtime.sandbox.wire import RawReset, RawStep, RawTool
from spade_runtime.validation.bench import Bench
from spade_runtime.validation.text import shown

_CONTROL = re.compile(
    r"<\|[a-zA-Z_][\w-]{0,40}\|>|</?think>|</?tool_call>|</?tool_response>|\[/?INST\]|<</?SYS>>"
    r"|</?s>|<(?:start|end)_of_turn>|<(?:bos|eos|pad)>"
)
_CODE = re.compile(
    r"Traceback \(most recent call last\)|File \"<environment>\"|\bself\._?[a-z]\w* ?="
    r"|<function \w+ at 0x|<[\w.]+ object at 0x"
)


def _texts(bench: Bench) -> Iterator[tuple[int, str | None, str]]:
    """Seed, action and text of everything that was shown."""
    for seed, start in bench.starts.items():
        if isinstance(start, RawReset):
            for text in (start.observation, *(start.turns or ())):
                if isinstance(text, str):
                    yield seed, None, text
    for play in bench.plays:
        for action, reply in zip(play.actions, play.replies, strict=True):
            if isinstance(reply, RawStep) and isinstance(reply.observation, str):
                yield play.seed, action, reply.observation
    for tool_play in bench.tool_plays:
        for call, answer in zip(tool_play.calls, tool_play.replies, strict=True):
            if isinstance(answer, RawTool) and isinstance(answer.result, str):
                yield tool_play.seed, f"{call[0]} {call[1].decode()}", answer.result


def audit_texts(bench: Bench) -> None:
    """Warn of control tokens and of feedback that shows the machinery.

    Both are warnings: the agent's own words, echoed, can look like either.
    """
    for seed, action, text in _texts(bench):
        said = action or ""
        token = _CONTROL.search(text)
        if token and token.group() not in said:
            bench.warned(
                "SPD305",
                f"an observation holds {shown(token.group())}, which reads as a chat template's "
                "control token; it is shown to models as plain text only",
                seed=seed,
                action=action,
            )
        code = _CODE.search(text)
        if code and code.group() not in said:
            bench.warned(
                "SPD702",
                f"feedback shows the environment's insides: {shown(code.group())}",
                seed=seed,
                action=action,
            )
