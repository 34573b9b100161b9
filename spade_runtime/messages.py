"""From the agent's message to an action or to tool calls (contract.md section 1).

What can't be read is told to the agent and changes nothing: no repaired guess is ever run, and
missing text never becomes `{}`. Every function takes time linear in the length of the message.

Forms of a tool call that are read:

* structured calls: OpenAI's `{"id", "type", "function": {"name", "arguments"}}`, or
  `{"name", "arguments"}`; in a list, or under `tool_calls` of an assistant message. Where a
  message has structured calls, its text is not searched for more;
* `<tool_call>{"name": ..., "arguments": {...}}</tool_call>` (Hermes, Qwen), one or several objects
  a block, with Python's quotes and constants allowed;
* `<tool_call><function=NAME><parameter=KEY>text</parameter></function></tool_call>` (Qwen3-Coder),
  whose values are text until the tool's schema says what they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from spade_runtime.authoring import boxed
from spade_runtime.errors import UsageError
from spade_runtime.literals import Unreadable, read_value, skip_space, too_deep
from spade_runtime.words import an

OPEN, CLOSE = "<tool_call>", "</tool_call>"
# More items than this are not even read; far above the 16 calls of a message that can run.
READ_MAX = 64
REMINDER = (
    "No tool call was found, so nothing was done. Call a tool like this:\n"
    '<tool_call>\n{"name": "tool_name", "arguments": {"argument": "value"}}\n</tool_call>'
)

_FUNCTION = re.compile(r"<function=([^<>\n]*)>")
_PARAMETER = re.compile(r"<parameter=([^<>\n]*)>")
_PARAMETER_END = re.compile(r"</parameter>\s*(?=<parameter=|</function>)")
_KEYS = frozenset(("name", "arguments", "id", "type"))


class ParsedCall(NamedTuple):
    """A call that could be read.

    Attributes:
        name: the tool's name as written.
        arguments: the arguments by name.
        call_id: the id of a structured call, where it has one.
        textual: the values are text whose type the tool's schema decides (the XML form).
    """

    name: str
    arguments: dict[str, Any]
    call_id: str | None = None
    textual: bool = False


class CallError(NamedTuple):
    """A call that could not be read; the message goes back to the agent as its result."""

    message: str
    call_id: str | None = None


Item = ParsedCall | CallError


def visible(text: str) -> str:
    """The part of a message outside its thinking.

    Everything up to the last `</think>` is thinking, and an unclosed `<think>` hides what follows.

    >>> visible("<think>a</think> b <think> c")
    ' b '
    """
    if "think>" not in text:
        return text
    rest = text[text.rfind("</think>") + 8 :] if "</think>" in text else text
    start = rest.find("<think>")
    return rest if start < 0 else rest[:start]


def boxed_action(text: str) -> str:
    r"""The action of a game's message: the last balanced box, or the stripped text without one.

    >>> boxed_action(r"I go left: \boxed{left}"), boxed_action(" left ")
    ('left', 'left')
    """
    shown = visible(text)
    found = boxed(shown)
    return shown.strip() if found is None else found


def game_actions(messages: Sequence[Any], dialect: str) -> list[str]:
    r"""The actions of a group's messages, in the form that a class of this dialect parses.

    Raises:
        UsageError: a message is neither text nor an OpenAI message, or does not encode.

    >>> game_actions([r"I go \boxed{left}", " up "], "contract")
    ['left', 'up']
    """
    try:
        whole = "\n".join(messages)
    except TypeError:
        pass  # not all of them are text
    else:
        # Looked through at once: most groups of short answers have nothing to take apart.
        if whole.isascii() and "think>" not in whole and "\\boxed" not in whole:
            return [message.strip() for message in messages]
    return [_game_action(message, dialect) for message in messages]


def _game_action(message: Any, dialect: str) -> str:
    text = visible(message_text(message))
    found = boxed(text)
    if found is None:
        return text.strip()
    return found if dialect == "contract" else f"\\boxed{{{found}}}"


def with_hint(observation: str, hint: str | None) -> str:
    r"""Add a hint to a first observation, as its last block.

    >>> with_hint("Find the door.", "It is red.")
    'Find the door.\n\nHint: It is red.'
    """
    return observation if hint is None else f"{observation}\n\nHint: {hint}"


def message_text(message: Any) -> str:
    """The text of a message: a string, or the content of an OpenAI message.

    Raises:
        UsageError: the message is neither, or its text can't be encoded as UTF-8.
    """
    if type(message) is str and message.isascii():
        return message
    content = message.get("content") if isinstance(message, Mapping) else message
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "".join(part for part in parts if isinstance(part, str))
    if content is None and isinstance(message, Mapping):
        content = ""
    if not isinstance(content, str):
        raise UsageError(
            f"a message is text or an OpenAI message with text content, not {_kind(message)}"
        )
    try:
        content.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise UsageError(
            f"the message holds a lone surrogate at character {problem.start}; decode it with "
            "errors='replace' first"
        ) from None
    return str(content)


def parse_tool_calls(message: Any) -> list[Item]:
    """Read the tool calls of a message, in order.

    Args:
        message: text, an OpenAI assistant message, one call, or a list of calls.

    Returns:
        One item for each call that is there, readable or not; an empty list where the message holds
        no call. At most `READ_MAX` items, the last of which then says that more were not read.

    Raises:
        UsageError: the message is of another type.

    >>> parse_tool_calls('<tool_call>{"name": "ping"}</tool_call>')
    [ParsedCall(name='ping', arguments={}, call_id=None, textual=False)]
    """
    if isinstance(message, Mapping):
        if message.get("tool_calls"):
            # Not the whole of it: what else an OpenAI message carries is not read.
            calls = message["tool_calls"]
            return [CallError("nested too deep")] if too_deep(calls) else parse_tool_calls(calls)
        if "name" in message or "function" in message:
            return [_from_object(message)]
    if isinstance(message, list | tuple):
        items = [_from_object(item) for item in message[:READ_MAX]]
        return _capped(items, len(message) > READ_MAX)
    return _scan(visible(message_text(message)))[0]


def final_answer(message: Any) -> str | None:
    """The last `<answer>...</answer>` outside thinking and tool calls (the published dialect)."""
    if not isinstance(message, str | Mapping):
        return None
    text = _scan(visible(message_text(message)))[1]
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, end) if end >= 0 else -1
    return text[start + len("<answer>") : end].strip() if start >= 0 else None


def _kind(value: Any) -> str:
    seen = "(nested too deep to show)" if too_deep(value) else f"{value!r:.60}"
    return f"{an(type(value).__name__)}: {seen}"


def _capped(items: list[Item], more: bool) -> list[Item]:
    if more:
        items = [*items[: READ_MAX - 1], CallError("more calls follow; they were not read")]
    return items


def _from_object(call: Any) -> Item:
    """One structured call, or the error that it is."""
    if isinstance(call, ParsedCall | CallError):
        return call
    if too_deep(call):
        return CallError("the call is nested too deep")
    if isinstance(call, tuple) and len(call) == 2:
        call = {"name": call[0], "arguments": call[1]}
    if not isinstance(call, Mapping):
        return CallError(f"a tool call is an object with name and arguments, not {_kind(call)}")
    call_id = call.get("id") if isinstance(call.get("id"), str) else None
    if "function" in call and "name" not in call:
        inner = call["function"]
        if not isinstance(inner, Mapping):
            return CallError(f"function is an object with name and arguments, not {_kind(inner)}")
        call = inner
    strange = sorted(str(key) for key in call if key not in _KEYS)
    if "name" not in call:
        return CallError("the call has no key 'name'" + _also(strange), call_id)
    if strange:
        return CallError(
            f"unexpected key {strange[0][:60]!r} in the call; the keys are 'name' and 'arguments'",
            call_id,
        )
    name = call["name"]
    if not isinstance(name, str):
        return CallError(f"name is {_kind(name)}; it must be a string", call_id)
    try:
        return ParsedCall(name, _arguments(call.get("arguments")), call_id)
    except Unreadable as problem:
        return CallError(str(problem), call_id)


def _also(strange: list[str]) -> str:
    return f" (it has {', '.join(repr(key[:60]) for key in strange[:4])})" if strange else ""


def _arguments(value: Any) -> dict[str, Any]:
    """The arguments of a call; a string is decoded once, nothing at all means none."""
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            decoded, end = read_value(value, skip_space(value, 0))
            if skip_space(value, end) != len(value):
                raise Unreadable("more text follows the object", end)
        except Unreadable as problem:
            raise Unreadable(f"arguments is a string that isn't valid JSON: {problem}") from None
        value = decoded
    if not isinstance(value, Mapping):
        raise Unreadable(f"arguments must be an object, not {_kind(value)}")
    if not all(isinstance(key, str) for key in value):
        raise Unreadable("the names of arguments are strings")
    return dict(value)


def _scan(text: str) -> tuple[list[Item], str]:
    """The calls of a text, and the text outside them."""
    items: list[Item] = []
    outside: list[str] = []
    position = 0
    while len(items) <= READ_MAX:
        start, stray = text.find(OPEN, position), text.find(CLOSE, position)
        if start < 0 and stray < 0:
            outside.append(text[position:])
            break
        if start < 0 or 0 <= stray < start:
            outside.append(text[position:stray])
            items.append(CallError(f"closing tag {CLOSE} without an opening tag"))
            position = stray + len(CLOSE)
            continue
        outside.append(text[position:start])
        body = start + len(OPEN)
        try:
            found, position = _block(text, body)
            items += found
        except Unreadable as problem:
            at = body if problem.position is None else max(body, problem.position)
            place = "" if problem.position is None else f" at char {at - body + 1} of the call"
            items.append(CallError(f"{problem}{place}"))
            # The rest of a block that can't be read is never searched for calls.
            end = text.find(CLOSE, at)
            position = len(text) if end < 0 else end + len(CLOSE)
    return _capped(items, len(items) > READ_MAX), "".join(outside)


def _block(text: str, position: int) -> tuple[list[Item], int]:
    """The calls of one `<tool_call>` block and the position after it; all of them or none."""
    items: list[Item] = []
    position = skip_space(text, position)
    while not text.startswith(CLOSE, position):
        if text.startswith("{", position):
            value, position = read_value(text, position)
            items.append(_from_object(value))
        elif text.startswith("<function=", position):
            call, position = _xml_call(text, position)
            items.append(call)
        elif position >= len(text):
            raise Unreadable("call not closed (the output ended)")
        else:
            raise Unreadable("expecting a JSON object with name and arguments", position)
        position = skip_space(text, position)
    if not items:
        raise Unreadable("the tool call is empty")
    return items, position + len(CLOSE)


def _xml_call(text: str, position: int) -> tuple[Item, int]:
    opening = _FUNCTION.match(text, position)
    if opening is None:
        raise Unreadable("expecting <function=NAME>", position)
    arguments: dict[str, Any] = {}
    position = skip_space(text, opening.end())
    while not text.startswith("</function>", position):
        parameter = _PARAMETER.match(text, position)
        if parameter is None:
            ended = position >= len(text)
            raise Unreadable(
                "call not closed (the output ended)" if ended else "expecting <parameter=NAME>",
                None if ended else position,
            )
        closing = _PARAMETER_END.search(text, parameter.end())
        if closing is None:
            raise Unreadable("a <parameter> is not closed", position)
        name = parameter.group(1).strip()
        if name in arguments:
            raise Unreadable(f"parameter {name[:60]!r} given twice", position)
        # One line end after the opening and one before the closing tag belong to the form.
        value = text[parameter.end() : closing.start()]
        arguments[name] = value.removeprefix("\n").removesuffix("\n")
        position = closing.end()
    name = opening.group(1).strip()
    return ParsedCall(name, arguments, None, True), position + len("</function>")


def split_results(observation: str, calls: int) -> list[str]:
    r"""Part the numbered results of several calls, as one observation holds them.

    >>> split_results("[1] a\n[2] b", 2)
    ['a', 'b']
    """
    if calls < 2 or not observation.startswith("[1] "):
        return [observation]
    results = []
    rest = observation.removeprefix("[1] ")
    for number in range(2, calls + 1):
        text, mark, rest = rest.partition(f"\n[{number}] ")
        results.append(text)
        if not mark:
            return results
    return [*results, rest]
