"""What a child's calls give: claims by exact type, exceptions as values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest

from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.wire import Bad, Raised, RawReset, RawSolution, RawStep, RawTool
from spade_runtime.spec import Limits

TOOLS = '''
class ShopEnv(ToolEnv):
    """Buy three things."""

    skill = "state_modification"

    def setup(self, rng):
        self.state = {"bought": 0, "price": rng.randint(1, 9)}

    @tool
    def buy(self, amount: int) -> str:
        """Buy some.

        amount: how many
        """
        print("bought", amount)
        self.state["bought"] += amount
        return {"bought": self.state["bought"]}

    @tool
    def fail(self) -> str:
        """Fail."""
        raise KeyError("till")

    def user_turns(self):
        def broken(state):
            return state["missing"]
        return [
            Turn("Buy one.", done=lambda state: state["bought"] >= 1),
            Turn("Buy two more.", done=lambda state: state["bought"] >= 3),
            Turn("Break.", done=broken),
        ]

    def solution(self):
        return [[call("buy", amount=1)], [call("buy", amount=2)], []]
'''


def test_a_class_is_read_loaded_reset_and_stepped(guarded: SandboxPool, healthy: str) -> None:
    with guarded.open_raw(healthy, instances=2) as child:
        reading = child.inspect()
        assert (reading.class_name, reading.kind, reading.dialect) == (
            "CountEnv",
            "game",
            "contract",
        )
        assert reading.findings == [] and reading.has_solution
        assert child.load().raised is None
        first, second = child.reset([0, 1], [7, 8])
        assert first == RawReset("Seed 7: count to three.", b'{"seed": 7}')
        assert isinstance(second, RawReset) and second.observation == "Seed 8: count to three."
        assert child.step([1], ["go"]) == [RawStep("go is 1", 0.0, False, False, b'{"count": 1}')]
        assert child.step([1, 0], ["a", "b"]) == [
            RawStep("a is 2", 0.0, False, False, b'{"count": 2}'),
            RawStep("b is 1", 0.0, False, False, b'{"count": 1}'),
        ]
        assert child.solution([0]) == [RawSolution(actions=["go", "go", "go"])]
        assert child.close_instances([0, 1]) == [None, None]


def test_tools_run_and_the_turn_is_asked(guarded: SandboxPool) -> None:
    with guarded.open_raw(TOOLS) as child:
        assert child.inspect().kind == "tool_use"
        loaded = child.load()
        assert [schema["name"] for schema in json.loads(loaded.schemas)] == ["buy", "fail"]
        (first,) = child.reset([0], [3])
        assert isinstance(first, RawReset)
        assert first.turns == ["Buy one.", "Buy two more.", "Break."]
        assert child.tool([0], [("buy", b'{"amount": 1}', 0)]) == [
            RawTool('{"bought": 1}', True, 9, "bought 1\n")
        ]
        (second,) = child.tool([0], [("buy", b'{"amount": 1}', 1)])
        assert isinstance(second, RawTool) and second.done is False
        (failed,) = child.tool([0], [("fail", b"{}", 1)])
        assert isinstance(failed, Raised) and failed.exc_type == "KeyError"
        (broken,) = child.tool([0], [("buy", b'{"amount": 1}', 2)])
        assert isinstance(broken, RawTool) and isinstance(broken.done, Raised)
        assert broken.done.phase == "criterion"
        (asked,) = child.criteria([0], [2])
        assert isinstance(asked, Raised) and asked.exc_type == "KeyError"
        (solved,) = child.solution([0])
        assert isinstance(solved, RawSolution)
        assert solved.calls == [[("buy", b'{"amount": 1}')], [("buy", b'{"amount": 2}')], []]


@pytest.mark.parametrize("name", ["setup", "reset", "_spade_turns", "__init__", "nothing"])
def test_only_declared_tools_are_dispatched(guarded: SandboxPool, name: str) -> None:
    with guarded.open_raw(TOOLS) as child:
        child.inspect()
        child.load()
        child.reset([0], [3])
        (answer,) = child.tool([0], [(name, b"{}", 0)])
        assert isinstance(answer, Raised) and answer.exc_type == "LookupError"


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ("None", "NoneType"),
        ("('a', 1.0, True, False)", "tuple"),
        ("['a', 1.0, True, False, {}]", "list"),
        ("7", "int"),
    ],
)
def test_a_result_of_another_shape_is_sent_as_bad(
    bare: SandboxPool,
    opened: Callable[..., RawChild],
    write: Callable[..., str],
    value: str,
    seen: str,
) -> None:
    with opened(bare, write(step=f"return {value}")) as child:
        (item,) = child.step([0], ["x"])
        assert isinstance(item, Bad) and item.type_name == seen


@pytest.mark.parametrize(
    ("field", "value", "seen"),
    [
        ("observation", "b'bytes'", "bytes"),
        ("observation", "'\\ud800'", "str"),
        ("observation", "type('Text', (str,), {})('x')", "Text"),
        ("reward", "True", "bool"),
        ("reward", "'1'", "str"),
        ("reward", "1j", "complex"),
        ("reward", "type('Real', (float,), {})(1)", "Real"),
        ("terminated", "1", "int"),
        ("truncated", "None", "NoneType"),
        ("info", "[]", "list"),
        ("info", "{'x': {1, 2}}", "dict"),
        ("info", "{'x': float('nan')}", "dict"),
        ("info", "{'x': '\\ud800'}", "dict"),
        ("info", "type('Map', (dict,), {})()", "Map"),
    ],
)
def test_a_value_of_a_wrong_type_is_sent_as_bad(
    bare: SandboxPool,
    opened: Callable[..., RawChild],
    write: Callable[..., str],
    field: str,
    value: str,
    seen: str,
) -> None:
    values = {"observation": "'o'", "reward": "0.0", "terminated": "False", "truncated": "False"}
    values["info"] = "{}"
    values[field] = value
    with opened(bare, write(step=f"return ({', '.join(values.values())})")) as child:
        (item,) = child.step([0], ["x"])
        assert isinstance(item, RawStep)
        claim = getattr(item, field)
        assert isinstance(claim, Bad) and claim.type_name == seen


@pytest.mark.parametrize(
    ("value", "seen"),
    [("2**80", math.inf), ("-10**400", -math.inf), ("float('inf')", math.inf), ("3", 3)],
)
def test_rewards_out_of_range_arrive_as_numbers(
    bare: SandboxPool,
    opened: Callable[..., RawChild],
    write: Callable[..., str],
    value: str,
    seen: float,
) -> None:
    with opened(bare, write(step=f"return 'o', {value}, False, False, {{}}")) as child:
        (item,) = child.step([0], ["x"])
        assert isinstance(item, RawStep) and item.reward == seen


def test_exceptions_carry_type_text_and_line(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    source = write(step="raise KeyError('door')")
    line = source.splitlines().index("        raise KeyError('door')") + 1
    with opened(bare, source) as child:
        assert child.step([0], ["x"]) == [Raised("step", "KeyError", "'door'", line)]


@pytest.mark.parametrize(
    "kind", ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "BaseException"]
)
def test_exceptions_that_are_no_errors_are_values_too(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], kind: str
) -> None:
    with opened(bare, write(step=f"raise {kind}('gone')")) as child:
        (item,) = child.step([0], ["x"])
        assert isinstance(item, Raised) and item.exc_type == kind
        assert child.reset([0], [1]) == [RawReset("ready", b"{}")]


def test_an_exception_that_lies_about_itself_is_still_described(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    head = """
    class Sly(Exception):
        def __str__(self):
            raise SystemExit
    """
    with opened(bare, write(head=head, step="raise Sly")) as child:
        (item,) = child.step([0], ["x"])
        assert isinstance(item, Raised) and (item.exc_type, item.message) == ("Sly", "")


def test_one_instance_that_raises_leaves_the_others_alone(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    with opened(bare, write(step="assert action == 'good', action"), 3) as child:
        items = child.step([0, 1, 2], ["good", "bad", "good"])
        assert [type(item) for item in items] == [RawStep, Raised, RawStep]


def test_what_is_printed_is_counted_and_its_end_kept(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    with opened(bare, write(step="print('ä' * 3000)\nprint('end')")) as child:
        (item,) = child.step([0], ["x"])
        assert isinstance(item, RawStep)
        assert item.printed_bytes == 6001 + 4
        assert item.printed_tail.endswith("ä\nend\n") and len(item.printed_tail) == 2048
        assert child.step([0], ["x"]) == [item]


def test_printing_over_the_limit_is_too_large_even_where_it_is_swallowed(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], quick: Limits
) -> None:
    step = """
    try:
        print("x" * 70000)
    except BaseException:
        pass
    """
    with opened(bare, write(step=step)) as child:
        (item,) = child.step([0], ["x"])
        assert isinstance(item, Raised) and item.code == "SPD804"


def test_a_reply_over_the_limit_is_too_large_and_the_others_arrive(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    with opened(
        bare, write(step="said = action * 300000 if action == 'x' else 'short'"), 3
    ) as child:
        items = child.step([0, 1, 2], ["y", "x", "y"])
        assert isinstance(items[1], Raised) and items[1].code == "SPD804"
        assert [isinstance(items[place], RawStep) for place in (0, 2)] == [True, True]


def test_large_legal_replies_of_many_instances_arrive_in_chunks(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    with opened(bare, write(step="said = '\\N{GRINNING FACE}' * 16384"), 16) as child:
        items = child.step(range(16), ["x"] * 16)
        assert [item.observation for item in items] == ["\N{GRINNING FACE}" * 16384] * 16  # type: ignore[union-attr]


def test_a_lone_surrogate_of_the_agent_is_shown_as_a_question_mark(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    with opened(bare, write(step="said = action")) as child:
        (item,) = child.step([0], ["a\ud800b"])
        assert isinstance(item, RawStep) and item.observation == "a?b"


def test_a_guard_that_was_swallowed_still_counts(guarded: SandboxPool) -> None:
    source = '''
class SlyEnv(TextEnv):
    """Look where it may not."""

    skill = "causal_inference"

    def reset(self, seed=None):
        return "ready", {}

    def step(self, action):
        try:
            getattr(self, "__cla" + "ss__")
        except BaseException:
            pass
        return "fine", 1.0, True, False, {}
'''
    with guarded.open_raw(source) as child:
        child.inspect()
        child.load()
        child.reset([0], [1])
        (item,) = child.step([0], ["x"])
        assert isinstance(item, Raised) and item.code == "SPD103"


def test_a_killed_child_says_so(bare: SandboxPool, healthy: str) -> None:
    child = bare.open_raw(healthy)
    child.inspect()
    child.kill()
    child.kill()
    with pytest.raises(RuntimeError, match="was killed"):
        child.load()
    assert child.cpu_seconds > 0


def test_no_slots_need_no_message(bare: SandboxPool, healthy: str) -> None:
    with bare.open_raw(healthy) as child:
        assert child.step([], []) == []


def test_several_actions_of_one_instance_go_in_one_message(
    bare: SandboxPool, opened: Callable[..., RawChild], healthy: str
) -> None:
    with opened(bare, healthy, 2) as child:
        items = child.step([0, 0, 1, 0], ["a", "b", "c", "d"])
        assert [item.observation for item in items] == ["a is 1", "b is 2", "c is 1", "d is 3"]  # type: ignore[union-attr]
        assert [item.terminated for item in items] == [False, False, False, True]  # type: ignore[union-attr]
