"""A group's reply by column says what a reply for each step alone says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.columns import GROUP_MIN
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.wire import Bad, Columns, Raised, RawStep

# What one step gives, by the action that asks for it; the rest are plain steps.
ODD = {
    "info": '("told", 0.0, False, False, {"word": action})',
    "paid": '("paid", 0.25, False, False, {})',
    "whole": '("paid in full", 1, False, False, {})',
    "huge": '("paid too much", 10**400, False, False, {})',
    "nan": '("not a number", float("nan"), False, False, {})',
    "true": '("paid a truth", True, False, False, {})',
    "end": '("over", 1.0, True, False, {})',
    "cut": '("cut off", 0.0, False, True, {})',
    "one": '("over", 0.0, 1, False, {})',
    "none": '("over", 0.0, False, None, {})',
    "surrogate": '("lone \\ud800", 0.0, False, False, {})',
    "umlaut": '("größer als 中", 0.0, False, False, {})',
    "empty": '("", 0.0, False, False, {})',
    "bytes": '(b"seen", 0.0, False, False, {})',
    "long": '("x" * 20000, 0.0, False, False, {})',
    "longer": '("x" * 120000, 0.0, False, False, {})',
    "wide": '("\\U0001f600" * 12000, 0.0, False, False, {})',
    "much": '("much to tell", 0.0, False, False, {"word": "y" * 20000})',
    "list": '("a list", 0.0, False, False, [])',
    "set": '("a set", 0.0, False, False, {"word": {1}})',
    "four": '("four", 0.0, False, False)',
    "text": '"seen"',
    "named": 'Named("seen", 0.0, False, False, {})',
}
SOURCE = f'''
import collections

Named = collections.namedtuple("Named", "a b c d e")


class OddEnv(TextEnv):
    """Do what the action says."""

    skill = "causal_inference"
    shared = {{}}

    def reset(self, seed=None):
        self.seed = seed
        return "ready", {{}}

    def step(self, action):
        if action == "raise":
            raise KeyError(action)
        if action == "print":
            print("printed", self.seed)
        if action == "same":
            self.shared["seed"] = self.seed
            return "the same", 0.0, False, False, self.shared
        if action == "draw":
            return f"drawn {{random.random()}}", 0.0, False, False, {{}}
        table = {{{", ".join(f"{name!r}: lambda action: {text}" for name, text in ODD.items())}}}
        if action in table:
            return table[action](action)
        return f"{{action}} of {{self.seed}}", 0.0, False, False, {{}}
'''
ACTIONS = ["go", "raise", "print", "draw", *ODD]
SLOTS = 12
ALL = list(range(SLOTS))


@pytest.fixture(scope="module")
def odd(guarded: SandboxPool, opened: Callable[..., RawChild]) -> RawChild:
    return opened(guarded, SOURCE, SLOTS)


@given(st.lists(st.sampled_from(["go", *ACTIONS]), min_size=GROUP_MIN, max_size=SLOTS))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None
)
def test_a_group_gives_what_each_step_gives(odd: RawChild, actions: list[str]) -> None:
    slots = ALL[: len(actions)]
    odd.reset(slots, slots)
    alone = [odd.step([slot], [action])[0] for slot, action in zip(slots, actions, strict=True)]
    odd.reset(slots, slots)
    group = odd.step(slots, actions)
    assert list(map(str, group)) == list(map(str, alone))


@pytest.mark.parametrize("count", [3, SLOTS])
@pytest.mark.parametrize("action", sorted(set(ACTIONS) - {"raise", "print"}))
def test_what_a_step_gives_is_told_by_its_types(odd: RawChild, action: str, count: int) -> None:
    odd.reset(ALL, ALL)
    items = odd.step(ALL[:count], ["go", action] + ["go"] * (count - 2))
    item = items.pop(1)
    for slot, plain in zip([0, *ALL[2:count]], items, strict=True):
        assert isinstance(plain, RawStep) and plain.observation == f"go of {slot}"
    if action in ("four", "text", "named"):
        assert isinstance(item, Bad)
    elif action == "longer":
        assert isinstance(item, Raised) and item.code == "SPD804"
    else:
        assert isinstance(item, RawStep)
        whole = (item.observation, item.reward, item.terminated, item.truncated, item.info)
        strange = [type(value).__name__ for value in whole if isinstance(value, Bad)]
        wrong = {"true", "one", "none", "surrogate", "bytes", "list", "set"}
        assert len(strange) == (action in wrong)


def test_plain_groups_come_by_column_and_say_only_what_is_new(odd: RawChild) -> None:
    odd.reset(ALL, ALL)
    plain = odd.moves(ALL[::-1], ["a"] * SLOTS)
    assert isinstance(plain, Columns)
    assert plain.observations == [f"a of {slot}" for slot in ALL[::-1]]
    assert (plain.rewards, plain.terminated, plain.truncated, plain.infos) == (None,) * 4
    rest = SLOTS - 2
    told = odd.moves(ALL, ["info", "end"] + ["a"] * rest)
    assert isinstance(told, Columns)
    assert told.infos == [b'{"word": "info"}', b"{}"] + [b"{}"] * rest
    assert told.rewards == [0.0, 1.0] + [0.0] * rest
    assert told.terminated == [False, True] + [False] * rest
    assert told.truncated is None


def test_a_few_steps_come_one_by_one(odd: RawChild) -> None:
    odd.reset(ALL, ALL)
    assert isinstance(odd.moves(ALL[: GROUP_MIN - 1], ["a"] * (GROUP_MIN - 1)), list)


def test_an_info_is_told_as_it_was_when_the_step_returned(odd: RawChild) -> None:
    odd.reset(ALL, ALL)
    for count in (3, SLOTS):
        items = odd.step(ALL[:count], ["same"] * count)
        infos = [item.info for item in items if isinstance(item, RawStep)]
        assert infos == [b'{"seed": %d}' % slot for slot in ALL[:count]]


def test_each_instance_of_a_group_draws_from_its_own_chance(odd: RawChild) -> None:
    odd.reset(ALL, [5] * (SLOTS - 1) + [6])
    alone = odd.step([0], ["draw"]) + odd.step([0], ["draw"])
    group = odd.step(ALL[1:], ["draw"] * (SLOTS - 1))
    again = odd.step(ALL[1:-1][::-1], ["draw"] * (SLOTS - 2))
    assert group[:-1] == [alone[0]] * (SLOTS - 2) and group[-1] != alone[0]
    assert again == [alone[1]] * (SLOTS - 2)


@pytest.mark.parametrize("action", ["wide", "long", "much"])
def test_a_large_group_comes_in_frames_that_the_parent_takes(odd: RawChild, action: str) -> None:
    slots = ALL
    odd.reset(slots, slots)
    (alone,) = odd.step([0], [action])
    assert odd.step(slots, [action] * SLOTS) == [alone] * SLOTS
    mixed = odd.step(slots, ["go", action] * (SLOTS // 2))
    assert mixed[1::2] == [alone] * (SLOTS // 2)
    assert [item.observation for item in mixed[::2] if isinstance(item, RawStep)] == [
        f"go of {slot}" for slot in slots[::2]
    ]
