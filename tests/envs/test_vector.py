import os

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import spade_envs
from spade_envs.env import SpadeEnv
from spade_envs.seats import Record
from spade_envs.shared import close_shared_pools
from spade_envs.vector import SpadeVectorEnv
from spade_runtime.errors import EpisodeOver, UsageError

SECRET = '''
class SecretEnv(TextEnv):
    """Tells on the third step what it was reset with."""

    skill = "memory_recall"
    max_turns = 9

    def reset(self, seed=None):
        self.secret, self.told = seed, 0
        return "Guess.", {}

    def step(self, action):
        self.told += 1
        while action == "loop":
            pass
        text = "go on" if self.told < 3 else f"secret {self.secret}"
        return text, 0.0, action == "end", False, {}
'''

TALLY = '''
class TallyEnv(TextEnv):
    """Keep a tally; some words do harm."""

    skill = "memory_recall"
    max_turns = 6

    def reset(self, seed=None):
        if seed == 666:
            raise ValueError("unlucky")
        if seed == 667:
            while True:
                pass
        self.words = [str(seed)]
        return " ".join(self.words), {"seed": seed}

    def step(self, action):
        if action == "raise":
            raise KeyError(action)
        if action == "loop":
            while True:
                pass
        if action == "fill":
            self.words = ["x"] * 10**9
        self.words.append(action)
        return " ".join(self.words), 0.25, action == "end", False, {"count": len(self.words)}
'''


def tally(num_envs, **options):
    return SpadeVectorEnv(num_envs, source=TALLY, **options)


@pytest.fixture
def four():
    vector = tally(4, per_child=4)
    yield vector
    vector.close()


def play(vector, rounds, seed=5):
    """Everything that a vector gives for the same actions."""
    found = [vector.reset(seed=seed)]
    for turn in range(rounds):
        actions = tuple(
            "end" if (turn + place) % 5 == 4 else f"w{turn}{place}"
            for place in range(vector.num_envs)
        )
        found.append(vector.step(actions))
    vector.close()
    return found


def same(left, right):
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            same(left[key], right[key])
    elif isinstance(left, np.ndarray):
        assert left.dtype == right.dtype
        assert left.tolist() == right.tolist()
    elif isinstance(left, tuple | list):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            same(one, other)
    else:
        assert left == right


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("source", [TALLY, TALLY.replace('{"count": len(self.words)}', "{}")])
def test_a_vector_is_what_gymnasiums_own_would_be(mode, source):
    own = play(SyncVectorEnv([lambda: SpadeEnv(source)] * 5, autoreset_mode=mode), 13)
    for per_child in (1, 2, 16):
        ours = SpadeVectorEnv(5, source=source, autoreset_mode=mode, per_child=per_child)
        same(play(ours, 13), own)


def test_a_steps_arrays_are_the_callers_own(four):
    four.reset(seed=1)
    results = [four.step(["a"] * 4) for _ in range(2)]
    assert results[0][4]["spade"]["_turn"].all()
    assert results[0][4]["spade"]["turn"].tolist() == [1] * 4
    for array in (*results[0][1:4], *results[0][4]["spade"].values(), results[0][4]["_spade"]):
        array[:] = 0
    rewards, infos = results[1][1], four.step(["b"] * 4)[4]["spade"]
    assert rewards.tolist() == [0.25] * 4
    assert (infos["turn"].tolist(), infos["action"].tolist()) == ([3] * 4, ["b"] * 4)
    assert infos["_solved"].all() and infos["fault"].tolist() == [None] * 4


def test_make_vec_takes_the_vector_of_ours():
    vector = gymnasium.make_vec("spade/RollingDie-v0", num_envs=3, autoreset_mode="SameStep")
    assert isinstance(vector, SpadeVectorEnv)
    assert vector.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    observations, infos = vector.reset(seed=[4, 4, 5])
    assert observations in vector.observation_space
    assert observations[0] == observations[1] != observations[2]
    assert infos["spade"]["turn"].tolist() == [0, 0, 0]
    result = vector.step(["hm", "ha", "ho"])
    assert [type(part) for part in result[:4]] == [tuple, *[np.ndarray] * 3]
    assert vector.spec.id == "spade/RollingDie-v0"
    vector.close()
    vector.close()


def test_observations_differ_where_the_async_vector_with_shared_text_gives_constants(four):
    observations, _ = four.reset(seed=[1, 2, 3, 4])
    assert observations == ("1", "2", "3", "4")
    assert four.step(["a", "b", "c", "d"])[0] == ("1 a", "2 b", "3 c", "4 d")
    with pytest.raises(ValueError, match="shared_memory"):
        AsyncVectorEnv([lambda: SpadeEnv(TALLY)] * 2, shared_memory=True)


def test_gymnasiums_async_vector_works_without_shared_memory():
    vector = AsyncVectorEnv([lambda: SpadeEnv(TALLY)] * 2, shared_memory=False)
    assert vector.reset(seed=[3, 4])[0] == ("3", "4")
    assert vector.step(("a", "b"))[0] == ("3 a", "4 b")
    vector.close()


def test_a_step_of_next_step_autoreset_ignores_the_action(four):
    four.reset(seed=[1, 2, 3, 4])
    four.step(["end", "b", "c", "d"])
    observations, rewards, terminated, _, infos = four.step([object(), "b", "c", "d"])
    assert observations[0] not in ("1", "1 end")
    assert (rewards[0], terminated[0]) == (0.0, False)
    assert infos["spade"]["turn"].tolist() == [0, 2, 2, 2]
    assert infos["count"].tolist() == [0, 3, 3, 3]
    assert infos["_count"].tolist() == [False, True, True, True]


def test_same_step_autoreset_keeps_the_last_observation():
    vector = tally(2, autoreset_mode=AutoresetMode.SAME_STEP)
    vector.reset(seed=[1, 2])
    observations, rewards, terminated, _, infos = vector.step(["end", "b"])
    assert infos["final_obs"].tolist() == ["1 end", None]
    assert infos["final_info"]["count"].tolist() == [2, 0]
    assert terminated.tolist() == [True, False]
    assert rewards.tolist() == [0.25, 0.25]
    assert observations[0].isdigit()
    assert observations[1] == "2 b"
    vector.close()


def test_disabled_autoreset_wants_a_mask():
    vector = tally(3, autoreset_mode="Disabled")
    vector.reset(seed=[1, 2, 3])
    vector.step(["end", "b", "c"])
    with pytest.raises(EpisodeOver, match="environment 0 has ended.*reset_mask"):
        vector.step(["a", "b", "c"])
    mask = np.array([True, False, False])
    observations, infos = vector.reset(seed=[7, 8, 9], options={"reset_mask": mask})
    assert observations == ("7", "2 b", "3 c")
    assert infos["_seed"].tolist() == [True, False, False]
    assert vector.step(["a", "b", "c"])[0] == ("7 a", "2 b b", "3 c c")
    vector.close()


def test_hints_and_limits(four):
    observations, _ = four.reset(seed=[1] * 4, options={"hint": [None, "a", None, "b"]})
    assert observations == ("1", "1\n\nHint: a", "1", "1\n\nHint: b")
    four.reset(seed=[1] * 4, options={"hint": "c", "max_turns": 1})
    assert four.step(["x"] * 4)[3].tolist() == [True] * 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v: v.step(["a"] * 3), "4 actions are needed, 3 came"),
        (lambda v: v.step("abcd"), "4 actions are needed, in a list or a tuple; one text came"),
        (lambda v: v.step(["a", "b", "c", 4]), "a message is text"),
        (lambda v: v.step(["a", "b", "c", "\ud800"]), "lone surrogate"),
        (lambda v: v.reset(seed=[1, 2]), "4 seeds are needed, 2 came"),
        (lambda v: v.reset(seed=[1, 2, 3, -4]), "a seed is an integer"),
        (lambda v: v.reset(options={"reset_mask": [0, 1, 0, 1]}), "is a boolean array"),
        (lambda v: v.reset(options={"reset_mask": np.zeros(4, bool)}), "at least one True"),
        (lambda v: v.reset(options={"hint": ["a"]}), "4 hints are needed"),
        (lambda v: v.reset(options={"hint": 4}), "a hint is a text or True"),
        (lambda v: v.reset(options={"hint": "\ud800"}), "lone surrogate"),
        (lambda v: v.reset(options={"hint": "x" * 10**6}), "at most 262,144 characters"),
        (lambda v: v.reset(options={"hint": " "}), "hint is blank"),
        (lambda v: v.reset(options={"hnt": "x"}), "did you mean 'hint'"),
        (lambda v: v.reset(options="hint"), "options is a dictionary"),
        (lambda v: v.reset(options={"max_turns": "3"}), "a whole number"),
        (lambda v: v.reset(options={"max_turns": 2.5}), "a whole number"),
        (lambda v: v.reset(seed=[7, 8, 9, 2**31]), "a seed is an integer"),
        (lambda v: v.reset(seed=[1.5, 1, 1, 1]), "a seed is an integer"),
        (lambda v: v.reset(seed={1, 2, 3, 4}), "a seed is an integer"),
        (lambda v: v.reset(seed=2**31 - 2), "a seed is an integer"),
        (lambda v: v.step({"a", "b", "c", "d"}), "a set came"),
    ],
)
def test_a_callers_mistake_leaves_every_episode_as_it_was(call, message):
    vector = tally(4, per_child=2)
    vector.reset(seed=[1, 2, 3, 4])
    vector.step(["a", "b", "c", "d"])
    with pytest.raises(UsageError, match=message):
        call(vector)
    assert vector.step(["e"] * 4)[0] == ("1 a e", "2 b e", "3 c e", "4 d e")
    vector.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0, "source": TALLY}, "num_envs is a whole number of at least 1"),
        ({"num_envs": 1}, "name a source"),
        ({"num_envs": 2, "members": ["spade/RollingDie-v0"]}, "a list of 2 ids"),
        ({"num_envs": 1, "source": TALLY, "autoreset_mode": "Never"}, "'NextStep', 'SameStep'"),
    ],
)
def test_impossible_vectors(arguments, message):
    with pytest.raises(UsageError, match=message):
        SpadeVectorEnv(**arguments)


def test_stepping_before_the_first_reset(four):
    with pytest.raises(EpisodeOver, match="call reset first"):
        four.step(["a"] * 4)
    with pytest.raises(UsageError, match="the first reset is of all"):
        four.reset(options={"reset_mask": np.array([True, False, False, False])})


def test_an_exception_ends_its_own_environment(four):
    four.reset(seed=[1, 2, 3, 4])
    observations, rewards, terminated, truncated, infos = four.step(["a", "raise", "c", "d"])
    assert observations == ("1 a", "", "3 c", "4 d")
    assert truncated.tolist() == [False, True, False, False]
    assert not terminated.any()
    assert rewards.tolist() == [0.25, 0.0, 0.25, 0.25]
    assert infos["spade"]["fault"][1]["code"] == "SPD401"
    assert infos["spade"]["fault"][0] is None
    assert four.step(["e"] * 4)[0][2] == "3 c e"


@pytest.mark.parametrize(("word", "code"), [("loop", "SPD801"), ("fill", "SPD802")])
@pytest.mark.parametrize("per_child", [1, 4])
def test_a_lost_child_ends_one_environment_and_no_other(word, code, per_child):
    vector = tally(4, per_child=per_child)
    vector.reset(seed=[1, 2, 3, 4])
    vector.step(["a", "end", "c", "d"])
    observations, _, _, truncated, infos = vector.step(["b", "ignored", word, "f"])
    assert (observations[0], observations[2:]) == ("1 a b", ("", "4 d f"))
    assert truncated.tolist() == [False, False, True, False]
    assert infos["spade"]["fault"][2]["code"] == code
    assert [fault is None for fault in infos["spade"]["fault"]] == [True, True, False, True]
    begun = observations[1]
    observations, _, _, truncated, _ = vector.step(["g", "h", "ignored", "i"])
    assert (observations[0], observations[1], observations[3]) == (
        "1 a b g",
        f"{begun} h",
        "4 d f i",
    )
    assert not truncated.any()
    assert vector.restored == (0 if per_child == 1 or word == "fill" else 3)
    vector.close()


def test_two_culprits_in_one_child():
    vector = tally(4, per_child=4)
    vector.reset(seed=[1, 2, 3, 4])
    observations, _, _, truncated, _ = vector.step(["loop", "b", "loop", "d"])
    assert truncated.tolist() == [True, False, True, False]
    assert observations == ("", "2 b", "", "4 d")
    assert vector.step(["x"] * 4)[0][1] == "2 b x"
    vector.close()


def test_a_reset_that_fails_is_told_by_the_next_step(four):
    observations, infos = four.reset(seed=[1, 666, 3, 4])
    assert observations == ("1", "", "3", "4")
    assert infos["spade"]["fault"][1]["code"] == "SPD303"
    observations, _, _, truncated, infos = four.step(["a"] * 4)
    assert truncated.tolist() == [False, True, False, False]
    assert infos["spade"]["fault"][1]["code"] == "SPD303"
    observations, _, _, truncated, infos = four.step(["b"] * 4)
    assert observations[1].isdigit()
    assert not truncated.any()


def test_many_classes_in_one_vector():
    ids = ["spade/RollingDie-v0", "spade/HerbariumSearch-v0", "spade/RollingDie-v0"]
    vector = SpadeVectorEnv(3, members=[*ids[:2], {"source": TALLY}])
    observations, infos = vector.reset(seed=[3, 3, 3])
    for place, name in enumerate(ids[:2]):
        env = gymnasium.make(name)
        assert observations[place] == env.reset(seed=3)[0]
        env.close()
    assert observations[2] == "3"
    assert infos["spade"]["_tools"].tolist() == [False, True, False]
    assert isinstance(infos["spade"]["tools"][1], list)
    call = '<tool_call>{"name": "nothing"}</tool_call>'
    observations = vector.step(["north", call, "word"])[0]
    assert observations[1].startswith("Error: unknown tool 'nothing'")
    assert observations[2] == "3 word"
    vector.close()


def test_a_vector_of_tools_is_solved_by_structured_calls():
    vector = gymnasium.make_vec("spade/HerbariumSearch-v0", num_envs=3, autoreset_mode="Disabled")
    vector.reset(seed=[1, 2, 3])
    steps = [seat.table.session.solution(slots=[seat.slot])[0] for seat in vector._seats]
    for calls in zip(*steps, strict=True):
        _, rewards, terminated, _, infos = vector.step(list(calls))
    assert terminated.all()
    assert rewards.tolist() == [1.0] * 3
    assert infos["spade"]["credit"].tolist() == [1.0] * 3
    vector.close()


def test_rendering(four):
    assert four.render() is None
    vector = tally(2, render_mode="ansi")
    vector.reset(seed=[1, 2])
    vector.step(["\x1b", "b"])
    assert vector.render() == ("1 \\x1b", "2 b")
    vector.close()


def test_vectors_are_part_of_the_public_face():
    assert spade_envs.SpadeVectorEnv is SpadeVectorEnv


def test_what_was_said_and_shown_is_kept_by_round_and_given_by_slot():
    record = Record(3)
    for slot in range(3):
        record.begin(slot, f"start {slot}", f"start {slot} with a hint")
    assert (record.shown[1], record.seen[1]) == ("start 1", "start 1 with a hint")
    record.add(None, ["a", "b", "c"], ["A", "B", "C"])
    record.add([0, 2], ["d", None], ["D", "E"])
    record.begin(1, "anew", "anew, with a hint")
    assert record.actions(1) == []
    record.add([1], ["f"], ["F"])
    record.begin(2, "anew", "anew")
    record.add(None, ["g", "h", "i"], ["G", "H", "I"])
    assert [record.actions(slot) for slot in range(3)] == [["a", "d", "g"], ["f", "h"], ["i"]]
    assert record.shown == record.seen == ["G", "H", "I"]
    for number in range(1000):
        record.add(None, [number] * 3, ["x"] * 3)
    assert record.actions(0) == ["a", "d", "g", *range(1000)]


def test_a_refused_reset_leaves_the_task_that_a_replay_would_play():
    with_culprit = SpadeVectorEnv(2, source=SECRET)
    with_culprit.reset(seed=[1, 2])
    with_culprit.step(["a", "a"])
    with pytest.raises(UsageError):
        with_culprit.reset(seed=[7, 2**31])
    observations, *_ = with_culprit.step(["a", "loop"])
    assert (observations, with_culprit.restored) == (("go on", ""), 1)
    assert with_culprit.step(["a", "a"])[0][0] == "secret 1"
    with_culprit.close()


@pytest.mark.parametrize("per_child", [1, 64])
def test_a_refused_step_draws_no_task(per_child):
    def begun(*bad):
        vector = SpadeVectorEnv(2, source=SECRET, per_child=per_child)
        vector.reset(seed=[1, 2])
        vector.step(["end", "a"])
        for message in bad:
            with pytest.raises(UsageError):
                vector.step(["ignored", message])
        vector.step(["ignored", "a"])
        for _ in range(3):
            shown = vector.step(["a", "a"])[0][0]
        vector.close()
        return shown

    assert begun("\ud800", None) == begun()


def test_true_asks_for_the_hint_that_comes_with_each():
    vector = SpadeVectorEnv(2, members=["spade/RollingDie-v0", "spade/CoinBalance-v0"])
    shown = vector.reset(seed=1, options={"hint": [True, None]})[0]
    assert "\n\nHint: " in shown[0] and "Hint: " not in shown[1]
    assert all("\n\nHint: " in text for text in vector.reset(seed=1, options={"hint": True})[0])
    vector.close()
    own = SpadeVectorEnv(1, source=SECRET)
    with pytest.raises(UsageError, match="there is none"):
        own.reset(seed=1, options={"hint": True})


def test_a_closed_vector_says_so(four):
    four.reset(seed=1)
    four.close()
    for call in (lambda: four.step(["a"] * 4), lambda: four.reset(seed=1)):
        with pytest.raises(UsageError, match="this vector is closed"):
            call()


def test_members_are_named_as_make_names_them():
    vector = SpadeVectorEnv(2, members=["spade_envs:spade/RollingDie-v0", "spade/RollingDie-v0"])
    first, second = vector.reset(seed=[3, 3])[0]
    assert first == second
    vector.close()
    spade_envs.register(SECRET, level="best_effort")
    with pytest.raises(UsageError, match="registered with level='best_effort'"):
        SpadeVectorEnv(1, members=["spade/Secret-v0"])


def test_a_step_that_only_resets_tells_of_no_action():
    vector = SpadeVectorEnv(1, source=SECRET)
    vector.reset(seed=1)
    assert "action" in vector.step(["end"])[4]["spade"]
    assert "action" not in vector.step(["ignored"])[4]["spade"]
    vector.close()


def test_a_process_that_was_forked_off_plays_nothing_of_its_parents(four):
    """Two processes on one pipe would each take the other's turns."""
    single = SpadeEnv(SECRET)
    single.reset(seed=1)
    four.reset(seed=1)
    said, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            for call in (lambda: single.step("a"), lambda: four.step(["a"] * 4)):
                try:
                    call()
                except UsageError as refused:
                    os.write(told, f"{refused}\n".encode())
            single.close()
            four.close()
            close_shared_pools()
            status = 0
        finally:
            os._exit(status)
    os.close(told)
    assert os.waitpid(pid, 0)[1] == 0
    with os.fdopen(said) as heard:
        assert heard.read().count("forked off") == 2
    assert single.step("a")[0] == "go on"
    assert len(four.step(["a"] * 4)[0]) == 4
    single.close()
