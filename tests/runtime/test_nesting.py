"""Messages whose lists and objects stand inside of each other without end."""

import pytest

from spade_runtime.errors import UsageError
from spade_runtime.messages import CallError, ParsedCall, message_text, parse_tool_calls


def nest(depth, kind=list):
    """A value of as many lists or objects inside of each other."""
    value = kind()
    for _ in range(depth - 1):
        value = [value] if kind is list else {"a": value}
    return value


@pytest.mark.parametrize("depth", [70, 300, 5000, 200_000])
@pytest.mark.parametrize("kind", [list, dict])
def test_calls_nested_beyond_reason_are_told_and_never_walked(depth, kind):
    deep = nest(depth, kind)
    for message in (
        [{"name": "ping", "arguments": {"host": deep}}],
        [{"name": "ping", "arguments": deep}],
        [("ping", {"host": deep})],
        [{"function": {"name": "ping", "arguments": deep}}],
        {"role": "assistant", "tool_calls": [{"name": deep}]},
        {"name": deep},
        [deep],
        {"tool_calls": deep},
    ):
        (found,) = parse_tool_calls(message)
        assert isinstance(found, CallError) and "nested too deep" in found.message
    inside = None
    for _ in range(depth):
        inside = {"tool_calls": inside or [("ping", {})]}
    assert "nested too deep" in parse_tool_calls(inside)[0].message


def test_text_of_a_call_is_read_to_the_same_depth_by_both_readers():
    for depth, fine in ((60, True), (70, False), (300, False)):
        for quote in "\"'":
            call = (
                f'{{"name":"ping","arguments":{{{quote}host{quote}:{"[" * depth + "]" * depth}}}}}'
            )
            (found,) = parse_tool_calls(f"<tool_call>{call}</tool_call>")
            assert isinstance(found, ParsedCall) == fine
            assert fine or "nested too deep" in found.message


@pytest.mark.parametrize(("depth", "fine"), [(62, True), (63, False)])
def test_a_call_is_as_deep_as_its_deepest_list(depth, fine):
    # The call and its arguments are two more.
    (found,) = parse_tool_calls([{"name": "ping", "arguments": {"host": nest(depth)}}])
    assert isinstance(found, ParsedCall) == fine


def test_a_message_nested_beyond_reason_is_refused():
    with pytest.raises(UsageError, match="not a dict: \\(nested too deep to show\\)"):
        message_text({"content": nest(5000, dict)})
