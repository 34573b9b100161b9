"""Chat templates, exactly: contents never become special tokens, and suffixes are the template's.

A conversation grows by ids (training.md section 4), so two things are asked of a template: the
ids of a whole prompt, and the ids that follow a sampled reply up to the next one. Both come from
rendering the real template. What stands between its special tokens is tokenised with every
special token split, so that `<|im_start|>` in an observation stays plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from spade_train.errors import PolicyError
from spade_train.policies.base import Message

# Private-use characters: the first is put inside special literals of contents before a template
# is rendered (and taken out again), the second frames the place of a content in a layout.
_BREAK = "\ue000"
_FRAME = "\ue001"
_REPLY = f"{_FRAME}reply{_FRAME}"
_PAD = "\t \n"
_MARKUP = re.compile(r"^(<.*>|\[[A-Z_/ ]+\])$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Text around the contents of a conversation of one shape."""

    literals: tuple[str, ...]
    trimmed: tuple[bool, ...]

    def fill(self, contents: Sequence[str]) -> str:
        pieces = [self.literals[0]]
        for content, trim, literal in zip(contents, self.trimmed, self.literals[1:], strict=True):
            pieces += [content.strip() if trim else content, literal]
        return "".join(pieces)


class ChatTemplate:
    """A tokenizer's chat template as prompt ids and suffix ids.

    Args:
        tokenizer: a `transformers` tokenizer with a chat template.
        options: variables of the template, for example `{"enable_thinking": False}`.

    Raises:
        PolicyError: there is no chat template, or it leaves contents out.
    """

    def __init__(self, tokenizer: Any, options: Mapping[str, Any] | None = None) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise PolicyError(
                "the tokenizer has no chat template; use an instruction-tuned model, or put a "
                "chat_template.jinja beside the model"
            )
        self.tokenizer = tokenizer
        # A fixed date keeps templates that print one the same from day to day.
        self.options = {"date_string": "01 Jan 2026", **(options or {})}
        added = tokenizer.added_tokens_decoder
        special = {str(token): i for i, token in added.items() if token.special}
        for token in tokenizer.all_special_tokens:
            special.setdefault(str(token), tokenizer.convert_tokens_to_ids(str(token)))
        markup = {str(t): i for i, t in added.items() if _MARKUP.match(str(t)) and len(str(t)) > 1}
        self.literals: dict[str, int] = {**markup, **special}
        self._special = set(special)
        self._find = _alternation(self.literals)
        self._starts = _starts(self.literals)
        self._control = _starts(dict.fromkeys(self._special, 0))
        self.plain = lru_cache(maxsize=1 << 16)(self._plain)
        self._layouts: dict[tuple[Any, ...], _Layout | None] = {}
        self.supports_system = self._renders(("system", "user"))
        self.supports_tool_role = self._renders(("user", "assistant", "tool"))
        self.supports_tools = self._shows_tools()
        self.append_only = self._is_append_only()

    # -- what callers use ---------------------------------------------------------------------

    def prompt(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        add_generation_prompt: bool = True,
    ) -> list[int]:
        """Return the ids of a conversation, ready for a reply."""
        return self.encode_rendered(self.render(messages, tools, add_generation_prompt))

    def suffix(self, messages: Sequence[Message], last_token: int | None = None) -> list[int]:
        """Return the ids between a sampled reply and the next one.

        Args:
            messages: what was said in between (users, tools).
            last_token: the last id of the reply. The template's own end-of-turn token is left
                out where the reply already ends with it.
        """
        context: list[Message] = [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": _REPLY},
        ]
        text = self.render([*context, *messages], None, True)
        ids = self.encode_rendered(text[text.index(_REPLY) + len(_REPLY) :])
        return ids[1:] if last_token is not None and ids and ids[0] == last_token else ids

    @property
    def end_of_turn(self) -> int | None:
        """The special token that closes a reply in this template."""
        ids = self.suffix([{"role": "user", "content": "x"}])
        return ids[0] if ids and ids[0] in self.literals.values() else None

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
    ) -> str:
        """Return the template's text, with the breaks inside special literals of contents."""
        prepared = self._fit([dict(message) for message in messages])
        if tools and not self.supports_tools:
            first = prepared[0]
            first["content"] = f"{_tools_as_text(tools)}\n\n{first['content']}"
            tools = None
        contents = [self._guard(m["content"], m["role"]) for m in prepared]
        # A template looks into thinking, so such a conversation is rendered as it is.
        plain_shape = not any("</think>" in m["content"] for m in prepared)
        if plain_shape and (layout := self._layout(prepared, tools, add_generation_prompt)):
            return layout.fill(contents)
        for message, content in zip(prepared, contents, strict=True):
            message["content"] = content
        return self._apply(prepared, tools, add_generation_prompt)

    def encode_rendered(self, text: str) -> list[int]:
        """Tokenise rendered text: the template's special tokens as such, all else split."""
        ids: list[int] = []
        end = 0
        for match in self._find.finditer(text):
            if match.start() > end:
                ids += self.plain(text[end : match.start()].replace(_BREAK, ""))
            ids.append(self.literals[match.group()])
            end = match.end()
        if end < len(text):
            ids += self.plain(text[end:].replace(_BREAK, ""))
        return ids

    # -- how -----------------------------------------------------------------------------------

    def _plain(self, text: str) -> tuple[int, ...]:
        """Tokenise text so that no special token comes out, whatever it says."""
        cuts = [start.end() for start in self._starts.finditer(text)]
        ids: list[int] = []
        for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
            ids += self._encode(text[start:end])
        return tuple(ids)

    def _encode(self, text: str) -> list[int]:
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        if backend is None:
            return list(self.tokenizer.encode(text, add_special_tokens=False))
        return list(backend.encode(text, add_special_tokens=False).ids)

    def _guard(self, content: str, role: str) -> str:
        """Break the special literals of a content, so that rendering can't produce them.

        A model's own earlier reply keeps its markup (`<tool_call>`), never control tokens.
        """
        pattern = self._control if role == "assistant" else self._starts
        return pattern.sub(lambda start: start.group() + _BREAK, content)

    def _guard_tools(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._guard(value, "tool")
        if isinstance(value, Mapping):
            return {self._guard(str(k), "tool"): self._guard_tools(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._guard_tools(item) for item in value]
        return value

    def _fit(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Fold roles that the template can't say into ones that it can."""
        if not self.supports_tool_role:
            for message in messages:
                if message["role"] == "tool":
                    message["role"] = "user"
        if self.supports_system or messages[0]["role"] != "system" or len(messages) < 2:
            return messages
        system, first = messages[0], dict(messages[1])
        first["content"] = f"{system['content']}\n\n{first['content']}"
        return [first, *messages[2:]]

    def _apply(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None, prompt: bool
    ) -> str:
        wrapped = [{"type": "function", "function": self._guard_tools(t)} for t in tools or ()]
        try:
            text: str = self.tokenizer.apply_chat_template(
                list(messages),
                tools=wrapped or None,
                tokenize=False,
                add_generation_prompt=prompt,
                **self.options,
            )
        except Exception as error:  # templates raise jinja's errors, and any other
            roles = [message["role"] for message in messages]
            raise PolicyError(f"the chat template can't render {roles}: {error}") from error
        return text.replace("\\ue000", _BREAK)

    def _layout(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None,
        prompt: bool,
    ) -> _Layout | None:
        roles = tuple(message["role"] for message in messages)
        key = (roles, json.dumps(tools, sort_keys=True) if tools else "", prompt)
        if key not in self._layouts:
            self._layouts[key] = self._measure(roles, tools, prompt)
        return self._layouts[key]

    def _measure(
        self, roles: Sequence[str], tools: Sequence[Mapping[str, Any]] | None, prompt: bool
    ) -> _Layout | None:
        """Render a shape once, with frames for contents; None where frames get lost or moved."""
        cores = [f"{_FRAME}{i}{_FRAME}" for i in range(len(roles))]
        padded = [f"{_PAD}{core}{_PAD[::-1]}" for core in cores]
        text = self._apply(
            [{"role": r, "content": c} for r, c in zip(roles, padded, strict=True)], tools, prompt
        )
        literals: list[str] = []
        trimmed: list[bool] = []
        end = 0
        for core, whole in zip(cores, padded, strict=True):
            shown = whole if whole in text else core
            start = text.find(shown, end)
            if start < 0 or text.count(core) != 1:
                return None
            literals.append(text[end:start])
            trimmed.append(shown is core)
            end = start + len(shown)
        return _Layout((*literals, text[end:]), tuple(trimmed))

    def _renders(self, roles: Sequence[str]) -> bool:
        """Whether the template says all these roles, and keeps what they say."""
        messages = [{"role": role, "content": f"{_FRAME}{i}"} for i, role in enumerate(roles)]
        try:
            text = self._apply(messages, None, True)
        except PolicyError:
            return False
        return all(f"{_FRAME}{i}" in text for i in range(len(roles)))

    def _shows_tools(self) -> bool:
        """Whether the template says anything of tools; some leave them out without a word."""
        argument = {"text": {"type": "string", "description": "any text"}}
        tool = {
            "name": "probe_of_tools",
            "description": "Looks whether it is shown.",
            "parameters": {"type": "object", "properties": argument, "required": ["text"]},
        }
        try:
            text = self._apply([{"role": "user", "content": "x"}], [tool], True)
        except PolicyError:
            return False
        return "probe_of_tools" in text

    def _is_append_only(self) -> bool:
        """Whether a later rendering keeps an earlier prompt and its reply, thinking included."""
        question = {"role": "user", "content": "q"}
        reply = "<think>\nt\n</think>\n\na"
        first = self._apply([question], None, True)
        answer = {"role": "assistant", "content": reply}
        later = self._apply([question, answer, question], None, True)
        return later.startswith(first + reply)


def _tools_as_text(tools: Sequence[Mapping[str, Any]]) -> str:
    from spade_envs.wrappers import message_prompt

    return message_prompt([{"type": "function", "function": tool} for tool in tools])


def _alternation(literals: Mapping[str, int]) -> re.Pattern[str]:
    longest_first = sorted(literals, key=lambda literal: (-len(literal), literal))
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def _starts(literals: Mapping[str, int]) -> re.Pattern[str]:
    """Match the first character of every literal, of overlapping ones too."""
    return re.compile(f"(?={_alternation(literals).pattern}).", re.DOTALL)
