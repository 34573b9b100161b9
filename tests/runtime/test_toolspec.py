"""Tools in, schemas and problems out. Each class is built from its text, as in the sandbox."""

import json
import textwrap

import jsonschema_rs
import pytest

from spade_runtime import authoring
from spade_runtime.schemalint import lint, tool_problems
from spade_runtime.toolspec import derive

HEAD = (
    "from enum import Enum\nimport typing\nfrom typing import Any, Dict, List, Literal, Optional,"
    " Union\nfrom spade_runtime.authoring import ToolEnv, tool\n"
)


def derived(body, *, future=False, head=""):
    text = ("from __future__ import annotations\n" if future else "") + HEAD + head
    text += "class DeskEnv(ToolEnv):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    names = {"__name__": "environment"}
    exec(compile(text, "<environment>", "exec", dont_inherit=True), names)
    return derive(names["DeskEnv"])


def one(signature, doc="Do it.", **options):
    schemas, problems = derived(f'@tool\ndef act(self, {signature}):\n    """{doc}"""\n', **options)
    return (schemas[0] if schemas else None), problems


TYPES = [
    ("x: str", {"type": "string"}),
    ("x: int", {"type": "integer"}),
    ("x: float", {"type": "number"}),
    ("x: bool", {"type": "boolean"}),
    ("x: Literal['a', 'b']", {"type": "string", "enum": ["a", "b"]}),
    ("x: Literal[80, 120]", {"type": "integer", "enum": [80, 120]}),
    ("x: Literal[True]", {"type": "boolean", "enum": [True]}),
    ("x: Literal['a', 1]", {"type": ["string", "integer"], "enum": ["a", 1]}),
    ("x: list[str]", {"type": "array", "items": {"type": "string"}}),
    ("x: List[int]", {"type": "array", "items": {"type": "integer"}}),
    ("x: dict[str, int]", {"type": "object", "additionalProperties": {"type": "integer"}}),
    (
        "x: Dict[str, list[float]]",
        {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "number"}},
        },
    ),
    ("x: int | None", {"type": ["integer", "null"]}),
    ("x: Optional[str]", {"type": ["string", "null"]}),
    ("x: Union[None, bool]", {"type": ["boolean", "null"]}),
    ("x: list[str] | None", {"type": ["array", "null"], "items": {"type": "string"}}),
    ("x: Literal['a'] | None", {"type": ["string", "null"], "enum": ["a", None]}),
    ("x: typing.Literal['a']", {"type": "string", "enum": ["a"]}),
    ("x: 'list[int]'", {"type": "array", "items": {"type": "integer"}}),
    ("x: list['int']", {"type": "array", "items": {"type": "integer"}}),
    ("x: Colour", {"type": "string", "enum": ["red", "blue"]}),
    ("x: Literal[-1, 1]", {"type": "integer", "enum": [-1, 1]}),
]


@pytest.mark.parametrize("future", [False, True], ids=["objects", "texts"])
@pytest.mark.parametrize(("signature", "wanted"), TYPES, ids=[row[0] for row in TYPES])
def test_types_become_schemas(signature, wanted, future):
    found, problems = one(signature, future=future, head="Colour = Literal['red', 'blue']\n")
    assert problems == []
    assert found["parameters"] == {
        "type": "object",
        "properties": {"x": wanted},
        "required": ["x"],
        "additionalProperties": False,
    }
    assert lint(found["parameters"]) == []
    assert jsonschema_rs.meta.is_valid(found["parameters"])


REFUSED = [
    ("x", "argument x has no annotation"),
    ("x: set[str]", "set[str] is not supported"),
    ("x: tuple[int, int]", "is not supported"),
    ("x: Any", "is not supported"),
    ("x: object", "type object is not supported"),
    ("x: list", "list needs the type of its items"),
    ("x: dict", "dict needs the types of its keys and values"),
    ("x: dict[int, str]", "the keys of a dict are str"),
    ("x: int | str", "a union of several types"),
    ("x: int | str | None", "a union of several types"),
    ("x: None", "is not supported"),
    ("x: Size", "Size is an Enum; write Literal['s', 'l']"),
    ("x: list[Size]", "Size is an Enum"),
    ("x: Literal[1.5]", "Literal takes str, int, bool or None, not 1.5"),
    ("*x: int", "takes *x, which no schema can say"),
    ("**x: int", "takes *x, which no schema can say"),
    ("x: int, /", "x is positional-only"),
    ("größe: int", "argument größe: names are"),
    ("x: int = 'a'", "its default 'a' is no integer"),
    ("x: str = None", "its default None is no string; write T | None"),
    ("x: int = True", "its default True is no integer"),
    ("x: int = 1.0", "its default 1.0 is no integer"),
    ("x: float = float('nan')", "its default nan is no number"),
    ("x: Literal['a'] = 'b'", "its default 'b' is no ['a']"),
    ("x: list[int] = ['a']", "is no array"),
    ("x: " + "list[" * 12 + "int" + "]" * 12, "nested more than 10 levels deep"),
]


@pytest.mark.parametrize("future", [False, True], ids=["objects", "texts"])
@pytest.mark.parametrize(("signature", "message"), REFUSED, ids=[row[0][:40] for row in REFUSED])
def test_what_no_schema_can_say_is_spd501_with_the_mend(signature, message, future):
    head = "class Size(Enum):\n    SMALL = 's'\n    LARGE = 'l'\n"
    found, problems = one(signature, future=future, head=head)
    assert found is None
    ((code, text),) = problems
    assert code == "SPD501"
    assert text.startswith("tool act: ")
    assert message in text or (future and "is not supported" in text)


def test_defaults_and_required():
    found, problems = one(
        "a: int, b: float = 3, c: list[str] = ['x'], d: str | None = None, e: dict[str, int] = {}"
    )
    assert problems == []
    assert found["parameters"]["required"] == ["a"]
    properties = found["parameters"]["properties"]
    assert [properties[name].get("default", "-") for name in "abcde"] == ["-", 3, ["x"], None, {}]
    assert lint(found["parameters"]) == []


def test_string_annotations_are_never_run():
    text = "x: 'boom()'"
    found, problems = one(text, head="def boom():\n    raise SystemExit\n")
    assert found is None
    assert "boom() is not supported" in problems[0][1]
    found, problems = one("x: 'int if'")
    assert "can't be read" in problems[0][1]


NAMES = [
    ("_hidden", "leading underscore"),
    ("reset", "belongs to ToolEnv"),
    ("close", "belongs to ToolEnv"),
    ("größe", "ASCII letters"),
    ("a" * 65, "1 to 64"),
]


@pytest.mark.parametrize(("name", "message"), NAMES)
def test_names_that_can_not_be_called(name, message):
    _, problems = derived(f"@tool\ndef {name}(self):\n    pass\n")
    assert [code for code, _ in problems] == ["SPD501"]
    assert message in problems[0][1]


def test_names_that_differ_in_case_only_and_classes_without_tools():
    schemas, problems = derived("@tool\ndef look(self): ...\n@tool\ndef Look(self): ...\n")
    assert [schema["name"] for schema in schemas] == ["look"]
    assert "upper and lower case" in problems[0][1]
    assert derived("pass") == (
        [],
        [("SPD501", "DeskEnv declares no tool; put @tool above a method")],
    )


def test_static_methods_and_methods_without_self():
    _, problems = derived("@staticmethod\n@tool\ndef act(x: int): ...\n")
    assert "is a staticmethod" in problems[0][1]
    _, problems = derived("@tool\ndef act(): ...\n")
    assert "takes no self" in problems[0][1]
    with pytest.raises(TypeError, match="not on a staticmethod"):
        derived("@tool\n@staticmethod\ndef act(x: int): ...\n")


def test_a_subclass_may_take_a_tool_away_and_order_is_kept():
    head = (
        "class BaseEnv(ToolEnv):\n    @tool\n    def b(self): ...\n"
        "    @tool\n    def a(self): ...\n"
    )
    text = (
        HEAD
        + head
        + "class DeskEnv(BaseEnv):\n    def b(self): ...\n    @tool\n    def c(self): ...\n"
    )
    names = {"__name__": "environment"}
    exec(compile(text, "<environment>", "exec", dont_inherit=True), names)
    assert list(authoring.declared_tools(names["DeskEnv"])) == ["a", "c"]
    assert list(authoring.declared_tools(names["BaseEnv"])) == ["b", "a"]


DOCS = [
    ("Find it.", "Find it.", {}),
    ("Find it.\n\nday: the day\n", "Find it.", {"day": "the day"}),
    ("Find it.\nday: the day\nhour: the hour", "Find it.", {"day": "the day", "hour": "the hour"}),
    (
        "Find it.\n\nArgs:\n    day: the day,\n        in ISO form\n    hour (int): the hour\n",
        "Find it.",
        {"day": "the day, in ISO form", "hour": "the hour"},
    ),
    ("Find it.\n\n:param day: the day", "Find it.", {"day": "the day"}),
    ("Find it.\n\nNote: only open ones.", "Find it.\n\nNote: only open ones.", {}),
    (
        "Find it.\n\nday: the day\n\nReturns: the hours",
        "Find it.\n\nReturns: the hours",
        {"day": "the day"},
    ),
    ("Find orders that are\nday: this is prose", "Find orders that are\nday: this is prose", {}),
    ("day: what it is for", "day: what it is for", {}),
    ("Find it.\n\nIt says\nwhen: never", "Find it.\n\nIt says\nwhen: never", {}),
]


@pytest.mark.parametrize(("doc", "description", "described"), DOCS)
def test_docstrings_are_split_into_description_and_arguments(doc, description, described):
    found, problems = one("day: str, hour: int = 1", doc)
    assert problems == []
    properties = found["parameters"]["properties"]
    if "day: this is prose" not in doc:
        assert found["description"] == description
        assert {
            n: p["description"] for n, p in properties.items() if "description" in p
        } == described


@pytest.mark.parametrize(
    "doc",
    [
        "Find it.\n\ndate: the day\n",
        "Find it.\n\nday: the day\ndate: another\n",
        "Find it.\n\nArgs:\n    Note: no argument\n",
        "Find it.\ndate: the day",
    ],
)
def test_a_docstring_that_describes_what_is_not_there_is_spd502(doc):
    found, problems = one("day: str", doc)
    assert found is not None
    ((code, message),) = problems
    assert code == "SPD502"
    assert "does not take (its arguments: day)" in message


LINTS = [
    ([], "the schema is no object"),
    ({"properties": {}}, "the root's type is None"),
    ({"type": "object", "properties": {"x": {"type": "array"}}}, "x: an array needs items"),
    (
        {"type": "object", "properties": {"x": {"anyOf": [{"type": "array"}]}}},
        "x: an array needs items",
    ),
    ({"type": "object", "properties": {}, "required": ["y"]}, "required names 'y'"),
    ({"type": "object", "properties": {"x": {"type": "float"}}}, "write 'number'"),
    ({"type": "object", "properties": {"x": {"type": "any"}}}, "is none"),
    (
        {"type": "object", "properties": {"x": {"type": "string", "minimum": 1}}},
        "minimum says nothing of a string",
    ),
    (
        {"type": "object", "properties": {"x": {"type": "integer", "enum": ["a"]}}},
        "the enum's 'a' is no integer",
    ),
    (
        {"type": "object", "properties": {"x": {"type": "integer", "default": True}}},
        "the default True is no integer",
    ),
    (
        {"type": "object", "properties": {"x": {"enum": ["a"], "default": "b"}}},
        "the default 'b' is not in the enum",
    ),
    ({"type": "object", "properties": {"x": {"$ref": "http://x/y"}}}, "$ref is not supported"),
    ({"type": "object", "properties": {"x": 3}}, "a schema is an object, not 3"),
    ({"type": "object", "properties": []}, "properties is an object"),
    ({"type": "object", "properties": {"x": {"enum": []}}}, "enum is a list of values"),
    (
        {"type": "object", "properties": {f"p{i}": {} for i in range(5001)}},
        "5001 properties; at most 5000",
    ),
    (
        {"type": "object", "properties": {"x" * 120_001: {}}},
        "names and enums of 120001 characters",
    ),
]


@pytest.mark.parametrize(("schema", "message"), LINTS)
def test_the_lint_names_what_no_meta_schema_catches(schema, message):
    assert message in lint(schema)[0]


def test_claimed_schemas_are_checked_once_more_in_the_parent():
    good = {"name": "a", "parameters": {"type": "object", "properties": {}}}
    assert tool_problems(json.dumps([good]).encode(), []) == []
    twice = json.dumps([good, {**good, "name": "A"}, {**good, "name": "a b"}]).encode()
    codes = [code for code, _ in tool_problems(twice, [("SPD502", "claimed")])]
    assert codes == ["SPD502", "SPD501", "SPD501"]
    for broken in (b"{}", b"[" * 9999, b"x", b"[3]", b'[{"name": "a"}]'):
        assert tool_problems(broken, [])[0][0] == "SPD501"
    deep = {"type": "object", "properties": {}}
    for _ in range(12):
        deep = {"type": "object", "properties": {"x": deep}}
    assert "nested more than 10" in lint(deep)[0]
