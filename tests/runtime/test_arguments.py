import pytest

from spade_runtime.arguments import ArgumentChecker
from spade_runtime.messages import CallError, ParsedCall
from spade_runtime.spec import ToolSpec


def checker(properties, required=(), **more):
    parameters = {"type": "object", "properties": properties, "required": list(required), **more}
    return ArgumentChecker([ToolSpec(name="act", parameters=parameters)])


def outcome(found):
    return found.message if isinstance(found, CallError) else found.arguments


NESTED = {
    "x": {"type": "integer"},
    "y": {"type": ["number", "null"]},
    "rows": {
        "type": "array",
        "items": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "box": {
        "type": "object",
        "properties": {"side": {"type": "integer"}},
        "required": ["side"],
        "additionalProperties": False,
    },
    "grit": {"type": "integer", "enum": [80, 120]},
    "mixed": {"type": ["string", "integer"]},
}


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"x": 2.0}, {"x": 2}),
        ({"x": 1e3}, {"x": 1000}),
        ({"y": 2.0}, {"y": 2.0}),
        ({"y": None}, {"y": None}),
        ({"rows": [{"a": 1.0}, {}]}, {"rows": [{"a": 1}, {}]}),
        ({"box": {"side": 3.0}}, {"box": {"side": 3}}),
        ({"grit": 80.0}, {"grit": 80}),
        ({"mixed": "7"}, {"mixed": "7"}),
        ({"x": 10**60}, {"x": 10**60}),
    ],
)
def test_whole_floats_reach_the_tool_as_integers(arguments, wanted):
    found = checker(NESTED).prepare(ParsedCall("act", arguments))
    assert repr(outcome(found)) == repr(wanted)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": "2"}, "x: '2' is a string, integer wanted"),
        ({"x": None}, "x: None is null, integer wanted"),
        ({"y": "1"}, "y: '1' is a string, null or number wanted"),
        ({"rows": [{"a": 1.5}]}, "rows[0].a: 1.5 is a number, integer wanted"),
        ({"rows": {}}, "rows: {} is an object, array wanted"),
        ({"box": {}}, "box: missing argument side"),
        ({"box": {"side": 1, "top": 2}}, "unknown argument top in box"),
        ({"grit": 100}, "grit: 100 is not one of 80, 120"),
        ({"z": 1}, "unknown argument z; the arguments are: x, y, rows, box, grit, mixed"),
        ({"x": {1, 2}}, ""),
        ({"mixed": "\ud800"}, "the arguments hold a lone surrogate (half of a character)"),
    ],
)
def test_errors_name_the_place_the_value_and_what_is_wanted(arguments, message):
    found = checker(NESTED).prepare(ParsedCall("act", arguments, "id-1"))
    assert isinstance(found, CallError)
    assert found.call_id == "id-1"
    assert found.message == message or (message == "" and found.message)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ({"x": " 7 "}, {"x": 7}),
        ({"x": "7.0"}, {"x": 7}),
        ({"x": "seven"}, "x: 'seven' can't be read as integer"),
        ({"x": "7 8"}, "x: '7 8' can't be read as integer"),
        ({"y": "null"}, {"y": None}),
        ({"y": "None"}, {"y": None}),
        ({"rows": '[{"a": 1}]'}, {"rows": [{"a": 1}]}),
        ({"rows": "[{'a': 1}]"}, {"rows": [{"a": 1}]}),
        ({"mixed": "7"}, {"mixed": "7"}),
        ({"w": "7"}, "unknown argument w; the arguments are: x, y, rows, box, grit, mixed"),
    ],
)
def test_text_values_are_read_towards_the_declared_type_only(text, wanted):
    found = checker(NESTED).prepare(ParsedCall("act", text, None, True))
    assert repr(outcome(found)) == repr(wanted)


def test_unknown_tools_are_told_with_the_names_there_are():
    many = ArgumentChecker([ToolSpec(name=f"tool_{n:02}") for n in range(30)])
    told = many.check(ParsedCall("tool_07x", {}))
    assert "did you mean tool_07?" in told
    assert told.endswith("tool_19, ...")
    assert many.check(ParsedCall("tool_07", {})) is None
    assert "unknown tool ''" in ArgumentChecker([]).check(ParsedCall("", {}))


def test_a_schema_that_does_not_name_its_strictness_is_strict():
    assert "unknown argument b" in checker({"a": {}}).check(ParsedCall("act", {"b": 1}))
    open_ended = checker({"a": {}}, additionalProperties=True)
    assert open_ended.check(ParsedCall("act", {"b": 1})) is None


def test_a_schema_that_can_not_be_used_is_refused_when_it_is_built():
    with pytest.raises(ValueError, match="(?i)type|schema"):
        checker({"a": {"type": "int"}})
    with pytest.raises(ValueError, match="(?i)regex|pattern"):
        checker({"a": {"type": "string", "pattern": "("}})
