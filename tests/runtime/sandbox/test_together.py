"""Several sessions played side by side: the same results as one after the other."""

import os

import pytest

from spade_runtime.errors import EpisodeOver, UsageError
from spade_runtime.sandbox.together import in_turn, together
from spade_runtime.spec import Limits

DESK = '''
class BellEnv(ToolEnv):
    """Ring bells."""

    skill = "tool_selection"

    def setup(self, rng):
        self.state = {"rung": 0}

    @tool
    def ring(self) -> str:
        """Ring once."""
        self.state["rung"] += 1
        return f"rung {self.state['rung']}"

    def user_turns(self):
        return [Turn(f"Ring {n}.", done=lambda s, n=n: s["rung"] >= n) for n in (2, 4, 6)]
'''
LOOP = '''
class LoopEnv(TextEnv):
    """Loops when told to."""

    skill = "memory_recall"

    def reset(self, seed=None):
        return f"seed {seed}", {}

    def step(self, action):
        while action == "loop":
            pass
        return action, 0.0, False, False, {}
'''
RING = '<tool_call>{"name": "ring"}</tool_call>'


@pytest.fixture
def sessions(bare, healthy):
    opened = [bare.open(healthy, instances=2), bare.open(DESK, instances=2), bare.open(LOOP)]
    together([(one, one.resetting(range(one.instances))) for one in opened])
    yield opened
    for one in opened:
        one.close()


def test_results_are_those_of_each_session_alone(sessions, bare, healthy):
    game, desk, loop = sessions
    mixed = together(
        [
            (desk, desk.stepping([RING * 3, "nothing"])),
            (game, game.stepping(["a", "b"])),
            (loop, loop.acting(["c"])),
        ]
    )
    with bare.open(healthy, instances=2) as alone:
        alone.reset([0, 1])
        assert mixed[1] == alone.step(["a", "b"])
    with bare.open(DESK, instances=2) as alone:
        alone.reset([0, 1])
        assert mixed[0] == alone.step([RING * 3, "nothing"])
    assert mixed[2][0].observation == "c"
    assert together([]) == []


def test_a_message_without_calls_needs_no_request(sessions):
    _, desk, _ = sessions
    ((first, second),) = together([(desk, desk.stepping(["nothing", "nothing"]))])
    assert first.observation == second.observation
    assert first.info["spade"]["turn"] == 1


def test_a_lost_child_touches_no_other_session(sessions):
    game, desk, loop = sessions
    results = together(
        [
            (loop, loop.stepping(["loop"])),
            (desk, desk.stepping([RING, RING])),
            (game, game.stepping(["a", "b"])),
        ]
    )
    assert loop.faults[0].code == "SPD801"
    assert results[0][0].truncated
    assert [one.observation for one in results[1]] == ["rung 1", "rung 1"]
    assert loop.loss is loop.faults[0]
    ((begun,), _) = together([(loop, loop.resetting([5])), (game, game.stepping(["c", "d"]))])
    assert begun.observation == "seed 5"
    assert loop.loss is None


def test_nothing_is_sent_where_one_call_can_not_be_made(sessions):
    game, desk, loop = sessions
    with pytest.raises(UsageError, match="2 messages are needed"):
        together([(desk, desk.stepping([RING, RING])), (game, game.stepping(["a"]))])
    assert desk.step([RING, RING])[0].observation == "rung 1"
    game.step(["a", "b"])
    for _ in range(2):
        game.step(["a", "b"])
    with pytest.raises(EpisodeOver):
        together([(loop, loop.stepping(["x"])), (game, game.stepping(["a", "b"]))])


def test_several_calls_of_one_session_follow_each_other(sessions):
    game, desk, _ = sessions
    talks = [
        (
            one,
            in_turn(
                one.resetting([9], slots=[0]),
                one.stepping([message], slots=[1]),
            ),
        )
        for one, message in ((game, "a"), (desk, "nothing"))
    ]
    (begun, moved), (rung, told) = together(talks)
    assert begun[0].observation.startswith("Seed 9")
    assert moved[0].observation == "a is 1"
    assert rung[0].observation == "Ring 2."
    assert told[0].info["spade"]["turn"] == 1
    assert together([(game, in_turn())]) == [[]]


def test_a_reset_and_steps_go_to_the_child_together(sessions, bare, healthy, monkeypatch):
    game, desk, _ = sessions
    sent = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: sent.append(data) or write(fd, data))
    for one, message in ((game, "a"), (desk, RING)):
        sent.clear()
        together(
            [(one, in_turn(one.resetting([9], slots=[0]), one.stepping([message], slots=[1])))]
        )
        assert len(sent) == 1
    with bare.open(healthy, instances=2) as alone:
        alone.reset([0, 1])
        begun = alone.reset([7], slots=[0])
        moved = alone.step(["b"], slots=[1])
    game.reset([0, 1])
    found = together(
        [(game, in_turn(game.resetting([7], slots=[0]), game.stepping(["b"], slots=[1])))]
    )
    assert found == [[begun, moved]]


@pytest.mark.parametrize("alone", [True, False])
def test_a_child_that_is_lost_between_two_replies(bare, healthy, alone):
    """The reset has its reply, and the loss ends the episode that it began."""
    with bare.open(LOOP, instances=3) as loop, bare.open(healthy) as game:
        together([(loop, loop.resetting([1, 2, 3])), (game, game.resetting([1]))])
        both = in_turn(
            loop.resetting([5], slots=[1]), loop.stepping(["go on", "loop"], slots=[0, 2])
        )
        others = [] if alone else [(game, game.stepping(["a"]))]
        ((begun,), moved), *rest = together([(loop, both), *others])
        assert begun.observation == "seed 5"
        assert [one.info["spade"]["fault"]["code"] for one in moved] == ["SPD801"] * 2
        assert loop.loss is loop.faults[0] is loop.faults[1] is loop.faults[2]
        assert not any(loop.running(slot) for slot in range(3))
        assert all(one[0].observation == "a is 1" for one in rest)
        assert loop.reset([4, 5, 6])[2].observation == "seed 6"


def test_a_child_that_is_lost_by_the_first_of_two_requests(bare):
    source = LOOP.replace("        return f", "        while seed == 5: pass\n        return f", 1)
    with bare.open(source, instances=2) as loop:
        loop.reset([1, 2])
        both = in_turn(loop.resetting([5], slots=[0]), loop.stepping(["a"], slots=[1]))
        (((begun,), (moved,)),) = together([(loop, both)])
        assert begun.info["spade"]["fault"]["code"] == "SPD801"
        assert moved.info["spade"]["fault"]["code"] == "SPD801"
        assert loop.loss is loop.faults[0] is loop.faults[1]


def test_each_of_two_requests_has_its_own_time(bare, healthy):
    """What a reset may take adds nothing to what a step may take, sent along or not."""
    source = LOOP.replace(
        "        return f", "        for _ in range(4_000_000): pass\n        return f", 1
    )
    limits = Limits(reset_seconds=20, step_seconds=0.2)
    with bare.open(source, instances=2, limits=limits) as loop:
        loop.reset([1, 2])
        both = in_turn(loop.resetting([5], slots=[0]), loop.stepping(["loop"], slots=[1]))
        (((begun,), (moved,)),) = together([(loop, both)])
        assert begun.observation == "seed 5"
        assert "0.2 s" in moved.info["spade"]["fault"]["message"]
