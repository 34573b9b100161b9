"""Plays with scripted and small policies in the real sandbox."""

import pytest

from spade_runtime.messages import split_results
from spade_train.errors import PolicyUnavailable
from spade_train.ledger import Ledger
from spade_train.plays import Group
from spade_train.policies.base import Sampling
from spade_train.policies.scripted import ScriptedPolicy, fixed, solution
from spade_train.rollout import Rollout, RolloutSettings

pytestmark = pytest.mark.usefixtures("isolation")

COUNT = '''class CountEnv(TextEnv):
    """Count."""

    skill = "optimization"
    max_turns = 3

    def reset(self, seed=None):
        self.seed, self.turn = seed, 0
        return f"Count from {seed}.", {"note": "x"}

    def step(self, action):
        self.turn += 1
        if action == "boom":
            raise ValueError("no")
        if action == "hang":
            while True:
                pass
        if action == str(self.seed + self.turn):
            return "Right. Go on.", 1.0 if self.turn == 2 else 0.4, self.turn == 2, False, {}
        return "Wrong.", 0.0, False, False, {}
'''
DESK = '''class DeskEnv(ToolEnv):
    """Work a desk."""

    skill = "data_retrieval"
    max_turns = 6

    def setup(self, rng):
        self.state = {"opened": [], "code": rng.randrange(10, 99)}

    @tool
    def open_drawer(self, name: str) -> str:
        """Open a drawer.

        name: of the drawer
        """
        self.state["opened"].append(name)
        return f"The drawer {name} holds a note: {self.state['code']}."

    def user_turns(self):
        return [
            Turn("Open the drawer a.", done=lambda s: "a" in s["opened"]),
            Turn("Open the drawer b.", done=lambda s: "b" in s["opened"]),
            Turn("Open the drawer c.", done=lambda s: "c" in s["opened"]),
        ]
'''


def rollout(sandbox, policy, **changes):
    settings = {"style": "compact", "sampling": Sampling(max_tokens=16), "max_turns": 5,
                "context_tokens": 2000, **changes}  # fmt: skip
    return Rollout(sandbox, policy, RolloutSettings(**settings), Ledger(parameters=10))


def game(seeds, hint=None, name="g"):
    return Group(name, "0" * 64, COUNT, "game", seeds, hint)


def tools(seeds):
    return Group("t", "0" * 64, DESK, "tool_use", seeds)


def call(tool, /, **arguments):
    import json

    return f"<tool_call>{json.dumps({'name': tool, 'arguments': arguments})}</tool_call>"


def test_a_solution_wins_and_every_turn_is_on_record(sandbox):
    answers = {f"Count from {s}.": [f"so \\boxed{{{s + 1}}}", f"{s + 2}"] for s in (5, 70)}
    player = rollout(sandbox, solution(answers))
    plays = player.play([game([5, 70])], 1)[0]
    for play, seed in zip(plays, (5, 70), strict=True):
        assert (play.solved, play.terminated, play.truncated) == (True, True, False)
        assert play.rewards == [0.4, 1.0]
        assert play.actions == [str(seed + 1), str(seed + 2)]
        assert play.replies == [f"so \\boxed{{{seed + 1}}}", str(seed + 2)]
        assert play.observations == [f"Count from {seed}.", "Right. Go on.", "Right. Go on."]
        assert play.value("terminal") == 1.0
        line = play.to_json(3, "sum", 5)
        assert line["episode_return"] == 1.0  # clamped
        assert [m["role"] for m in line["messages"]] == ["user", "assistant", "user", "assistant"]
    account = player.ledger.account("agent")
    assert (account.executions, account.generations) == (2, 4)


def test_the_limit_of_turns_truncates_both_arms_alike(sandbox):
    groups = [game([5, 6]), game([5, 6], hint="Add one.", name="h")]
    plain, hinted = rollout(sandbox, fixed("x"), max_turns=2).play(groups, 1)
    for play in (*plain, *hinted):
        assert (len(play.replies), play.truncated, play.solved) == (2, True, False)
    assert plain[0].observations[0] == "Count from 5."
    assert hinted[0].observations[0] == "Count from 5."
    assert hinted[0].dialogue.messages[0]["content"].endswith("Count from 5.\n\nHint: Add one.")
    line = hinted[0].to_json(3, "sum", 2)
    assert (line["hint"], line["max_turns"], line["arm"]) == ("Add one.", 2, "hinted")
    assert (plain[0].group.arm, hinted[0].group.arm) == ("unhinted", "hinted")


def test_a_fault_voids_its_play_and_no_other(sandbox):
    """One of 32 plays raises; the others go on, and the void one has neither return nor sample."""

    def script(messages, rng):
        return "boom" if "Count from 17." in messages[0]["content"] else "x"

    plays = rollout(sandbox, ScriptedPolicy(script)).play([game(list(range(32)))], 1)[0]
    void = [play for play in plays if play.fault]
    assert [play.seed for play in void] == [17]
    assert void[0].fault["kind"] == "EnvRaised"
    assert void[0].fault["code"] == "SPD401"
    assert void[0].charged
    assert void[0].value("terminal") is None
    assert void[0].samples == []
    assert all(len(play.replies) == 3 for play in plays if not play.fault)


def test_a_hang_voids_what_was_unfinished_in_its_child_and_nothing_elsewhere(sandbox):
    def script(messages, rng):
        return "hang" if "Count from 3." in messages[0]["content"] else "x"

    groups = [game([1, 2, 3]), game([4, 5], name="other")]
    first, other = rollout(sandbox, ScriptedPolicy(script)).play(groups, 1)
    assert {play.fault["code"] for play in first} == {"SPD801"}
    assert all(play.fault is None and play.truncated for play in other)


def test_a_source_that_does_not_open_voids_its_group(sandbox):
    raising = Group("b", "0" * 64, COUNT + "\nx = 1 / 0\n", "game", [1, 2])
    refused = Group("c", "0" * 64, "class BEnv(TextEnv):\n    pass\n", "game", [1])
    groups = [raising, refused, game([1])]
    plays, others, fine = rollout(sandbox, fixed("x")).play(groups, 1)
    assert [play.fault["code"] for play in plays] == ["SPD301", "SPD301"]
    assert others[0].fault["code"] == "SPD203"
    assert fine[0].fault is None


def test_tool_results_reach_the_policy_one_by_one_in_their_own_role(sandbox):
    script = [
        f"Both. {call('open_drawer', name='z')}{call('open_drawer', name='a')}",
        "No call here.",
        call("open_drawer", name="b"),
        call("open_drawer", name="c"),
    ]
    plays = rollout(sandbox, fixed(*script)).play([tools([9])], 1)[0]
    play = plays[0]
    assert play.solved
    assert play.credit == 1.0
    assert play.rewards == [0.0, 0.0, 0.0, 1.0]
    messages = play.dialogue.messages
    roles = [m["role"] for m in messages]
    assert roles == [
        "user", "assistant", "tool", "tool", "assistant", "user", "assistant", "tool", "assistant"
    ]  # fmt: skip
    assert messages[2]["content"].startswith("The drawer z holds")
    assert messages[3]["content"].endswith("Next instruction: Open the drawer b.")
    assert "No tool call was found" in messages[5]["content"]
    from spade_train.policies.text import parse

    _, schemas = parse(play.dialogue.prompt)
    assert [schema["name"] for schema in schemas] == ["open_drawer"]


def test_best_return_counts_the_users_turns_that_were_completed(sandbox):
    plays = rollout(sandbox, fixed(call("open_drawer", name="a"))).play([tools([1])], 1)[0]
    assert plays[0].credit == pytest.approx(1 / 3)
    assert plays[0].value("best") == pytest.approx(1 / 3)
    assert plays[0].value("terminal") == 0.0


def test_a_cut_reply_ends_its_episode_unseen(sandbox, small_policy):
    """The small policy almost never ends a reply by itself."""
    plays = rollout(sandbox, small_policy).play([game([1, 2, 3, 4])], 1)[0]
    cut = [play for play in plays if play.cut]
    assert cut
    for play in cut:
        assert play.truncated
        assert play.rewards[-1] == 0.0
        assert len(play.observations) == len(play.actions) + 1
        assert play.samples[0].spoken >= 16


def test_a_conversation_that_fills_the_context_is_cut(sandbox, small_policy):
    small_policy.stop_ids = frozenset(range(400))  # one token a reply
    small_policy.limit_context(60)
    plays = rollout(sandbox, small_policy, context_tokens=60).play([game([1, 2])], 1)[0]
    assert all(play.cut and play.truncated and play.fault is None for play in plays)
    assert all(0 < len(play.samples[0].ids) <= 60 for play in plays)


def test_the_same_labels_give_the_same_plays_and_others_do_not(sandbox, small_policy):
    small_policy.stop_ids = frozenset(range(300, 400))
    player = rollout(sandbox, small_policy)
    groups = [game(list(range(6))), tools([1, 2, 3])]

    def texts(plays):
        return [play.replies for group in plays for play in group]

    first = texts(player.play(groups, 7, 0))
    assert texts(player.play(groups, 7, 0)) == first
    assert texts(player.play(list(reversed(groups)), 7, 0)[::-1]) == first
    assert texts(player.play(groups, 7, 1)) != first


def test_a_policy_that_gives_up_loses_no_finished_play(sandbox):
    class Failing(ScriptedPolicy):
        """Its server goes away at the second turn."""

        def generate(self, prompts, sampling, seeds):
            if any("Wrong." in self.decode(prompt) for prompt in prompts):
                raise PolicyUnavailable("the server is gone")
            return super().generate(prompts, sampling, seeds)

    def script(messages, rng):
        return "boom" if "Count from 2." in messages[0]["content"] else "x"

    with pytest.raises(PolicyUnavailable) as caught:
        rollout(sandbox, Failing(script)).play([game([1, 2])], 1)
    assert [play.seed for play in caught.value.plays] == [2]


@pytest.mark.parametrize(
    ("text", "calls", "parts"),
    [
        ("a", 1, ["a"]),
        ("[1] a\n[2] b\nc", 2, ["a", "b\nc"]),
        ("[1] x [2] y\n[2] z\n\nNext", 2, ["x [2] y", "z\n\nNext"]),
        ("[1] a\n[2] b\n[3] c", 3, ["a", "b", "c"]),
        ("plain", 2, ["plain"]),
    ],
)
def test_numbered_results_are_parted(text, calls, parts):
    assert split_results(text, calls) == parts
