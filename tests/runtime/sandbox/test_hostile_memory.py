"""Environments that take all the memory or all the stack they can get."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spade_runtime.errors import EnvCrashed, EnvFault, EnvMemoryExceeded, EnvTimeout
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.wire import Raised, RawReset, RawStep
from spade_runtime.spec import Limits

pytestmark = pytest.mark.hostile

GREEDY = {
    "text": "said = 'a' * 10 ** 12",
    "table": "[0] * 10 ** 9",
    "growing": "rows = []\nwhile True:\n    rows.append('x' * 10 ** 6)",
    "doubling": "rows = ['x']\nwhile True:\n    rows += rows",
    "bytes": "bytearray(10 ** 11)",
    "swallow and keep": (
        "kept = []\nfor _ in range(60):\n    try:\n        kept.append(bytearray(10 ** 7))\n"
        "    except MemoryError:\n        kept.append(kept[:] * 10 ** 7)"
    ),
}


@pytest.mark.parametrize("step", GREEDY.values(), ids=GREEDY.keys())
def test_hostile_greed_is_a_memory_fault_and_the_child_lives(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], step: str
) -> None:
    with opened(bare, write(step=step)) as child:
        (item,) = child.step([0], ["x"])
        assert isinstance(item, Raised)
        assert (item.exc_type, item.code) == ("MemoryError", "SPD802")
        assert child.reset([0], [1]) == [RawReset("ready", b"{}")]


def test_hostile_swallowed_memory_error_in_a_loop(
    play: Callable[..., list[object]], write: Callable[..., str]
) -> None:
    step = """
    kept = []
    while True:
        try:
            kept.append(bytearray(10 ** 6))
        except MemoryError:
            pass
    """
    assert isinstance(play(write(step=step), "x")[-1], EnvTimeout)


def test_hostile_memory_kept_until_the_reply(
    play: Callable[..., list[object]], write: Callable[..., str]
) -> None:
    step = """
    global kept
    kept = []
    for size in (10 ** 7, 10 ** 5, 10 ** 3, 100):
        try:
            while True:
                kept.append(bytearray(size))
        except MemoryError:
            pass
    said = "x" * 9000
    """
    (last,) = play(write(head="kept = []", step=step), "x", "y")[-1:]
    if isinstance(last, list):
        # The child found memory for its reply after all; it says what happened.
        assert isinstance(last[0], Raised) and last[0].code == "SPD802"
    else:
        assert isinstance(last, EnvMemoryExceeded | EnvTimeout | EnvCrashed)


def test_hostile_recursion_is_an_exception(
    play: Callable[..., list[object]], write: Callable[..., str]
) -> None:
    ((item,),) = play(write(step="self.step(action)"), "x")[-1:]
    assert isinstance(item, Raised) and item.exc_type == "RecursionError"


@pytest.mark.parametrize(
    "step",
    [
        "sys.setrecursionlimit(10 ** 9)\nself.step(action)",
        "chain = []\nfor _ in range(10 ** 6):\n    chain = [chain]\nrepr(chain)",
        "lazy = iter([1])\nfor _ in range(10 ** 6):\n    lazy = filter(None, lazy)\nlist(lazy)",
        "ast.literal_eval('-' * 10 ** 6 + '1')",
        "sys.setrecursionlimit(10 ** 9)\nast.parse('(' * 190 + '1' + ')' * 190)\nself.step(1)",
    ],
    ids=["raised limit", "nested repr", "nested filter", "nested literal", "parser"],
)
def test_hostile_stack_is_contained(
    play: Callable[..., list[object]], write: Callable[..., str], step: str
) -> None:
    last = play(write(head="import ast, sys", step=step), "x")[-1]
    if isinstance(last, list):
        assert isinstance(last[0], Raised)
    else:
        assert isinstance(last, EnvCrashed | EnvTimeout | EnvMemoryExceeded)


def test_hostile_null_pointer_is_a_crash_with_its_signal(
    play: Callable[..., list[object]], write: Callable[..., str]
) -> None:
    step = "sys.modules['spade_runtime.sandbox.kernel'].ctypes.string_at(0)"
    fault = play(write(head="import sys", step=step), "x")[-1]
    assert isinstance(fault, EnvCrashed) and fault.evidence.signal == 11


def test_hostile_limits_of_one_child_are_its_own(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], quick: Limits
) -> None:
    source = write(step="said = str(len(bytearray(int(action) << 20)))")
    slow = quick.model_copy(update={"step_seconds": 2.0})
    with opened(bare, source, limits=slow.model_copy(update={"memory_mib": 512})) as large:
        (item,) = large.step([0], ["160"])
        assert isinstance(item, RawStep) and item.observation == str(160 << 20)
    with opened(bare, source, limits=slow) as small:
        assert isinstance(small.step([0], ["160"])[0], Raised)


def test_hostile_limits_cannot_be_raised(
    play: Callable[..., list[object]], write: Callable[..., str]
) -> None:
    step = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))"
    ((item,),) = play(write(step=step), "x")[-1:]
    assert isinstance(item, Raised)


def test_hostile_deep_source_is_contained(bare: SandboxPool) -> None:
    for source in (
        "x = " + "(" * 300 + ")" * 300,
        "x = " + "-" * 30000 + "1",
        "x = 9" + "**9" * 50,
    ):
        with bare.open_raw(source) as child:
            try:
                codes = [finding.code for finding in child.inspect().findings]
            except EnvFault:
                continue
            assert codes
