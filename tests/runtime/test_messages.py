import json
import time
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spade_runtime.arguments import ArgumentChecker
from spade_runtime.errors import UsageError
from spade_runtime.messages import (
    READ_MAX,
    CallError,
    ParsedCall,
    boxed_action,
    final_answer,
    message_text,
    parse_tool_calls,
    visible,
    with_hint,
)
from spade_runtime.spec import ToolSpec

GOLDEN = Path(__file__).parents[1] / "golden" / "golden.json"
TOOLS = [
    ToolSpec(
        name="book",
        parameters={
            "type": "object",
            "properties": {
                "flight_id": {"type": "string"},
                "seats": {"type": "integer"},
                "insured": {"type": "boolean", "default": False},
                "tags": {"type": "array", "items": {"type": "string"}},
                "note": {"type": "string"},
            },
            "required": ["flight_id", "seats"],
            "additionalProperties": False,
        },
    ),
    ToolSpec(
        name="find",
        parameters={
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    ),
    ToolSpec(name="ping"),
]
CHECKER = ArgumentChecker(TOOLS)


def understood(message):
    """What would run, as `name(arguments)`, and what would be told, as text."""
    found = []
    for item in parse_tool_calls(message):
        checked = CHECKER.prepare(item) if isinstance(item, ParsedCall) else item
        if isinstance(checked, CallError):
            found.append(f"E {checked.message}")
        else:
            found.append((checked.name, checked.arguments))
    return found


def block(inner):
    return f"<tool_call>{inner}</tool_call>"


def booking(rest):
    return block('{"name":"book","arguments":{"flight_id":"UA1",' + rest + "}}")


OSLO, ROME = ("find", {"city": "Oslo"}), ("find", {"city": "Rome"})
FIND_OSLO = '{"name":"find","arguments":{"city":"Oslo"}}'
CODER = (
    "<tool_call>\n<function=book>\n<parameter=flight_id>\n007\n</parameter>\n"
    "<parameter=seats>\n2\n</parameter>\n</function>\n</tool_call>"
)

# Row of the table of sample calls, message, and what must come of it: a call, or a part of the
# error that the agent is told.
ROWS = [
    ("1", '<tool_call>\n{"name": "find", "arguments": {"city": "Oslo"}}\n</tool_call>', [OSLO]),
    ("2", block(FIND_OSLO), [OSLO]),
    (
        "3",
        'Let me look.<think>maybe <tool_call>{"name":"ping","arguments":{}}</tool_call></think>'
        '<tool_call>{"name":"find","arguments":{"city":"Rome"}}</tool_call>',
        [ROME],
    ),
    (
        "4",
        block(FIND_OSLO) + "and" + booking('"seats":1'),
        [OSLO, ("book", {"flight_id": "UA1", "seats": 1})],
    ),
    (
        "5",
        block('{"name":"ping","arguments":{}}\n{"name":"find","arguments":{"city":"Rome"}}'),
        [("ping", {}), ROME],
    ),
    ("6", f"<tool_call>{FIND_OSLO}", ["call not closed"]),
    ("6b", '<tool_call>{"name":"find","arguments":{"ci', ["the text ends before"]),
    ("7", f"{FIND_OSLO}</tool_call>", ["without an opening tag"]),
    (
        "8",
        block("{'name': 'book', 'arguments': {'flight_id': 'UA1', 'seats': 2, 'insured': True}}"),
        [("book", {"flight_id": "UA1", "seats": 2, "insured": True})],
    ),
    (
        "9",
        block('{"name":"find","arguments":{"city":"Oslo",}}'),
        ["trailing comma"],
    ),
    ("9b", block("{'name':'find','arguments':{'city':'Oslo',}}"), ["trailing comma"]),
    (
        "10",
        block(r'{"name":"book","arguments":"{\"flight_id\":\"UA1\",\"seats\":2}"}'),
        [("book", {"flight_id": "UA1", "seats": 2})],
    ),
    (
        "11",
        block(r'{"name":"book","arguments":"{\"flight_id\": "}'),
        ["arguments is a string that isn't valid JSON"],
    ),
    ("11b", block('{"name":"ping","arguments":""}'), ["a string that isn't valid JSON"]),
    ("12", booking('"seats":"2"'), ["seats: '2' is a string, integer wanted"]),
    (
        "13",
        block('{"name":"book","arguments":{"flight_id":123,"seats":2}}'),
        ["flight_id: 123 is an integer, string wanted"],
    ),
    ("14", booking('"seats": 2.0'), [("book", {"flight_id": "UA1", "seats": 2})]),
    ("14b", booking('"seats": 2.5'), ["seats: 2.5 is a number, integer wanted"]),
    ("15", booking('"seats": true'), ["seats: True is a boolean, integer wanted"]),
    ("16", booking('"seats":1,"insured":"maybe"'), ["insured: 'maybe' is a string, boolean"]),
    (
        "17",
        block('{"name":"cancel","arguments":{}}'),
        ["unknown tool 'cancel'; available: book, find, ping"],
    ),
    *(
        (f"18 {name}", block(f'{{"name":"{name}","arguments":{{"a":1}}}}'), ["unknown tool"])
        for name in ("_check_answer", "tool_find", "__init__", "reset", "")
    ),
    ("19", block('{"name":"ping"}'), [("ping", {})]),
    ("19b", block('{"name":"ping","arguments":null}'), [("ping", {})]),
    ("19c", block('{"name":"ping","arguments":{}}'), [("ping", {})]),
    ("20", block('{"name":"ping","arguments":[]}'), ["arguments must be an object"]),
    (
        "21",
        booking('"seats":1,"note":"see </tool_call> tag"'),
        [("book", {"flight_id": "UA1", "seats": 1, "note": "see </tool_call> tag"})],
    ),
    ("22", booking('"seats":1,"note":"He said "hi""'), ["at char"]),
    (
        "23",
        booking('"seats":1,"note":"line1\nline2"'),
        [("book", {"flight_id": "UA1", "seats": 1, "note": "line1\nline2"})],
    ),
    ("24", booking(r'"seats":1,"tags":"[\"a\",\"b\"]"'), ["tags:", "array wanted"]),
    ("25", CODER, [("book", {"flight_id": "007", "seats": 2})]),
    ("26", f"```json\n{FIND_OSLO}\n```", []),
    ("27", block('{"tool":"find","params":{"city":"Oslo"}}'), ["no key 'name'"]),
    ("27b", block('{"name":"find","parameters":{"city":"Oslo"}}'), ["unexpected key 'parameters'"]),
    ("27c", block('{"name":"ping","parameters":{"x":1}}'), ["unexpected key 'parameters'"]),
    (
        "28",
        block('{"name":"find","arguments":{"city":"Oslo","country":"NO"}}'),
        ["unknown argument country; the arguments are: city"],
    ),
    (
        "29",
        block('{"name":"find","arguments":{"city":"Oslo","city":"Rome"}}'),
        ["key 'city' given twice"],
    ),
    ("29b", block("{'name':'ping','name':'find'}"), ["key 'name' given twice"]),
    ("30", booking('"seats": NaN'), ["NaN is no JSON value"]),
    ("30b", booking('"seats": 1e999'), ["too large"]),
    ("30c", booking('"seats": ' + "9" * 5000), ["5000 digits"]),
    ("30d", booking('"seats": -Infinity'), ["-Infinity is no JSON value"]),
    ("31", block(FIND_OSLO) + "<answer>done</answer>", [OSLO]),
    ("33", "", []),
    ("33b", "<tool_call></tool_call>", ["the tool call is empty"]),
    ("missing", booking('"note":"x"'), ["missing argument seats"]),
    ("nested", booking('"seats":1,"tags":["a",2]'), ["tags[1]: 2 is an integer, string wanted"]),
    ("list", block(f"[{FIND_OSLO}]"), ["expecting a JSON object"]),
    ("deep", block('{"name":"ping","arguments":' + "[" * 100_000), ["nested too deep"]),
    ("half", block(FIND_OSLO + "{'broken"), ["the text ends before"]),
    ("surrogate", booking(r'"seats":1,"note":"\ud800"'), ["lone surrogate"]),
    ("coder type", CODER.replace("2", "two"), ["seats: 'two' can't be read as integer"]),
    ("coder float", CODER.replace("2", "2.0"), [("book", {"flight_id": "007", "seats": 2})]),
    ("coder open", CODER[:-30], ["not closed"]),
    (
        "coder twice",
        CODER.replace("=seats", "=flight_id"),
        ["parameter 'flight_id' given twice"],
    ),
]


@pytest.mark.parametrize(("row", "message", "wanted"), ROWS, ids=[row[0] for row in ROWS])
def test_every_sample_call_is_read_or_refused_as_the_table_says(row, message, wanted):
    found = understood(message)
    if wanted and isinstance(wanted[0], str):
        assert len(found) == 1
        assert found[0].startswith("E ")
        for part in wanted:
            assert part in found[0]
    else:
        assert found == wanted
        # `2.0` and `True` compare equal to `2` and `1`; the tool must get the very type.
        assert json.dumps(found) == json.dumps(wanted)


def test_structured_calls_in_every_form():
    openai = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "find", "arguments": '{"city": "Oslo"}'},
    }
    plain = {"name": "find", "arguments": {"city": "Oslo"}}
    message = {"role": "assistant", "content": None, "tool_calls": [openai]}
    for form in ([openai], [plain], message, openai, plain, [("find", {"city": "Oslo"})]):
        assert understood(form) == [OSLO]
    assert parse_tool_calls([openai])[0].call_id == "call_1"
    text = {"role": "assistant", "content": block(FIND_OSLO), "tool_calls": []}
    assert understood(text) == [OSLO]
    parts = {"role": "assistant", "content": [{"type": "text", "text": block(FIND_OSLO)}]}
    assert understood(parts) == [OSLO]


def test_structured_calls_hide_calls_in_the_text():
    call = {"function": {"name": "ping", "arguments": "{}"}}
    assert understood({"content": block(FIND_OSLO), "tool_calls": [call]}) == [("ping", {})]


@pytest.mark.parametrize(
    ("item", "wanted"),
    [
        (7, "not an int"),
        ({"function": "find"}, "function is an object"),
        ({"arguments": {}}, "no key 'name'"),
        ({"name": 3}, "must be a string"),
        ({"name": "ping", "arguments": {1: 2}}, "are strings"),
        ({"function": {"name": "ping", "arguments": "{"}}, "isn't valid JSON"),
    ],
)
def test_a_structured_call_that_is_none_is_told(item, wanted):
    (found,) = understood([item])
    assert found.startswith("E ")
    assert wanted in found


def test_a_message_of_another_type_is_the_callers_mistake():
    for message in (None, 3, b"ping", {"content": 3}):
        with pytest.raises(UsageError, match="a message is text"):
            parse_tool_calls(message)
    with pytest.raises(UsageError, match="lone surrogate at character 1"):
        message_text("a\ud800")


def test_more_items_than_are_read_are_said_to_be_there():
    found = parse_tool_calls([("ping", {})] * (READ_MAX + 9))
    assert len(found) == READ_MAX
    assert "more calls follow" in found[-1].message
    found = parse_tool_calls(block('{"name":"ping"}') * (READ_MAX + 9))
    assert len(found) == READ_MAX
    assert "more calls follow" in found[-1].message


@pytest.mark.parametrize(
    "unit",
    [
        "<tool_call>",
        "</tool_call>",
        "<tool_call>x</tool_call>",
        '<tool_call>{"a":',
        "<tool_call>{'a':",
        "<tool_call>{'",
        "<tool_call><function=a><parameter=b>",
        "</parameter> ",
        "<think>",
        "</think><think>",
        "\\boxed{",
        "\\boxed{{}",
        "<answer>",
        "{",
        '"',
    ],
)
def test_reading_takes_linear_time(unit):
    def seconds(size):
        text = unit * (size // len(unit))
        start = time.process_time()
        parse_tool_calls(text)
        boxed_action(text)
        final_answer(text)
        return time.process_time() - start

    small = min(seconds(100_000) for _ in range(3))
    # Sixteen times the text may take 16 times as long; a quadratic reader takes 256 times.
    assert seconds(1_600_000) < 100 * max(small, 0.002)


@pytest.mark.parametrize("case", json.loads(GOLDEN.read_text("utf-8"))["boxed_action"])
def test_golden_boxed_actions(case):
    assert boxed_action(case["text"]) == case["expected"]


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (r"\boxed{a \boxed{b} c}", "b"),
        (r"\boxed{a} \boxed{b", "a"),
        (r"{ \boxed{q}", "q"),
        (r"} \boxed {q}", "q"),
        (r"\boxed{{}}", ""),
        (r"\boxed{{ go left }}", "go left"),
        (r"\boxed{{a} {b}}", "{a} {b}"),
        (r"<think>\boxed{1}", ""),
        (r"a <think> b </think> c <think> d", "c"),
        (r"<think>a</think> \boxed{1} </think> \boxed{2}", "2"),
    ],
)
def test_boxes_thinking_and_plain_text(text, action):
    assert boxed_action(text) == action


def test_visible_text_and_hints():
    assert visible("no thinking") == "no thinking"
    assert visible("</think>x<think>y") == "x"
    assert with_hint("a", None) == "a"
    assert with_hint("a", "b") == "a\n\nHint: b"


def test_an_answer_counts_only_outside_calls_and_thinking():
    quoted = booking('"seats":1,"note":"<answer>done</answer>"')
    assert final_answer(quoted) is None
    assert final_answer("<think><answer>no</answer></think> ok") is None
    assert final_answer(f"{quoted}<answer> done </answer>") == "done"
    assert final_answer("<answer>a < b</answer>") == "a < b"
    assert final_answer([("ping", {})]) is None


@settings(max_examples=300, deadline=None)
@given(
    st.text(alphabet=st.sampled_from(list("{}[]\"':,\\ \n1eNTFx")) | st.characters(codec="utf-8"))
)
def test_no_text_breaks_the_readers(inner):
    for text in (inner, block(inner), f"<tool_call>{inner}", f"<tool_call><function={inner}"):
        for item in parse_tool_calls(text):
            told = item.message if isinstance(item, CallError) else CHECKER.check(item)
            assert told is None or told.strip()
        boxed_action(text)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(max_size=6), json_values, max_size=4))
def test_arguments_come_back_whole(arguments):
    call = {"name": "any", "arguments": arguments}
    # An unclosed <think> hides what follows it, wherever it stands.
    assume("think>" not in json.dumps(call))
    (read,) = parse_tool_calls(block(json.dumps(call)))
    assert read == ParsedCall("any", arguments)
    (read,) = parse_tool_calls(block(json.dumps(call, ensure_ascii=False)))
    assert read == ParsedCall("any", arguments)


@given(
    st.dictionaries(
        st.text("abc'\"", max_size=4),
        st.booleans() | st.none() | st.integers() | st.text("ab'\" \n{}<>", max_size=9),
        max_size=4,
    )
)
def test_python_spelling_is_read_exactly(arguments):
    (read,) = parse_tool_calls(block(repr({"name": "any", "arguments": arguments})))
    assert read == ParsedCall("any", arguments)
