"""The parent's half of an episode, played over real children."""

import textwrap

import numpy as np
import pytest

from spade_runtime.errors import (
    EnvRaised,
    EnvTimeout,
    EnvViolation,
    EpisodeOver,
    InvalidEnvironment,
    UsageError,
)
from spade_runtime.messages import REMINDER
from spade_runtime.sandbox.toolrounds import ALL_DONE, NEW_INSTRUCTION, TOO_MANY

GAME = '''
class SumEnv(TextEnv):
    """Add up."""

    skill = "mathematical_reasoning"
    max_turns = 4

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.a, self.b, self.turn = rng.randint(1, 99), rng.randint(1, 99), 0
        return f"{self.a} + {self.b}?", {"seed": seed, "spade": "forged"}

    def step(self, action):
        self.turn += 1
        right = action == str(self.a + self.b)
        return f"you said {action}", (1.0 if right else 0), right, action == "stop", {}

    def solution(self):
        return [str(self.a + self.b)]
'''

DESK = '''
class DeskEnv(ToolEnv):
    """Look after three drawers."""

    skill = "state_modification"
    max_turns = 6

    def setup(self, rng):
        self.state = {"open": [], "count": 0, "already": True}
        self.first = rng.randint(1, 99)

    @tool
    def open_drawer(self, number: int, gently: bool = False) -> str:
        """Open a drawer."""
        self.state["open"].append(number)
        return f"drawer {number} {'gently ' if gently else ''}open"

    @tool
    def count(self) -> dict[str, int]:
        """Count the open drawers."""
        self.state["count"] = len(self.state["open"])
        return {"open": self.state["count"]}

    @tool
    def whisper(self) -> str:
        """Say nothing."""
        return ""

    @tool
    def shout(self, times: int) -> str:
        """Say much."""
        return "A" * times

    @tool
    def jam(self) -> str:
        """Break."""
        return self.missing

    def user_turns(self):
        return [
            Turn(f"Open drawer {self.first}.", done=lambda s: self.first in s["open"]),
            Turn("Count them.", done=lambda s: s["count"]),
            Turn("Do anything.", done=lambda s: s["already"]),
        ]

    def solution(self):
        return [[call("open_drawer", number=self.first)], [call("count")], [call("whisper")]]
'''


def block(name, arguments="{}"):
    return f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>'


@pytest.fixture
def game(guarded):
    with guarded.open(GAME, instances=3) as session:
        yield session


@pytest.fixture
def desk(guarded):
    with guarded.open(DESK, instances=2) as session:
        yield session


def test_a_game_is_paid_and_solved_as_the_parent_sees_it(game):
    first, second, third = game.reset([5, 5, 6])
    assert first.observation == second.observation != third.observation
    assert first.info == {"seed": 5, "spade": {"turn": 0, "solved": False, "fault": None}}
    assert first.info is not second.info
    answers = [steps[0] for steps in game.solution()]
    results = game.step([f"<think>\\boxed{{1}}</think> \\boxed{{ {answers[0]} }}", "7", "stop"])
    won, lost, stopped = results
    assert won == (
        f"you said {answers[0]}",
        1.0,
        True,
        False,
        {"spade": {"turn": 1, "solved": True, "fault": None, "action": answers[0]}},
    )
    assert type(lost.reward) is float
    assert (lost.reward, lost.terminated, lost.truncated) == (0.0, False, False)
    assert (stopped.terminated, stopped.truncated) == (False, True)
    assert [game.running(slot) for slot in range(3)] == [False, True, False]
    with pytest.raises(EpisodeOver, match="slot 0 has ended"):
        game.step(["x", "x", "x"])
    (still,) = game.step(["x"], slots=[1])
    assert still.info["spade"]["turn"] == 2


@pytest.mark.parametrize(("limit", "steps"), [(None, 4), (2, 2), (99, 4)])
def test_the_parent_truncates_at_the_lower_limit(game, limit, steps):
    game.reset([1, 2, 3], max_turns=limit)
    for turn in range(1, steps + 1):
        results = game.step(["x"] * 3)
        assert [result.truncated for result in results] == [turn == steps] * 3


def test_numpys_integers_are_seeds(game):
    assert game.reset(np.array([5, 6, 7])) == game.reset([5, 6, 7])


def test_terminated_wins_over_the_limit(game):
    game.reset([1], slots=[0], max_turns=1)
    (answers,) = game.solution(slots=[0])
    (result,) = game.act([answers[0]], slots=[0])
    assert (result.terminated, result.truncated) == (True, False)


def test_raw_actions_bypass_the_extraction(game):
    game.reset([1, 2, 3])
    (raw,) = game.act(["\\boxed{a}"], slots=[0])
    (read,) = game.step(["\\boxed{a}"], slots=[1])
    assert raw.observation == "you said \\boxed{a}"
    assert read.observation == "you said a"


@pytest.mark.parametrize(
    "messages",
    [
        [" a ", "b\n", ""],
        ["a", "so \\boxed{b}", "<think>x</think> c "],
        ["a", {"role": "assistant", "content": " b "}, "Größe "],
    ],
)
def test_a_message_is_read_the_same_alone_and_in_a_group(game, messages):
    game.reset([1, 2, 3])
    together = [result.info["spade"]["action"] for result in game.step(messages)]
    game.reset([1, 2, 3])
    alone = [game.step([one], slots=[slot])[0] for slot, one in enumerate(messages)]
    assert together == [result.info["spade"]["action"] for result in alone]
    assert together[0] == "a"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.reset([1]), "3 seeds are needed"),
        (lambda s: s.reset([1, 2, -1]), "a seed is an integer from 0 to 2147483647, not -1"),
        (lambda s: s.reset([1, 2, 2**31]), "not 2147483648"),
        (lambda s: s.reset([1, 2, True]), "not True"),
        (lambda s: s.reset([1, 2, 3.0]), "not 3.0"),
        (lambda s: s.reset([1, 2, "3"]), "not '3'"),
        (lambda s: s.reset([1, 2], slots=[0, 0]), "a slot stands twice"),
        (lambda s: s.reset([1], slots=[3]), "slots are 0 to 2"),
        (lambda s: s.reset([1, 2, 3], max_turns=0), "max_turns is a whole number of at least 1"),
        (lambda s: s.step(["a", "b"]), "3 messages are needed, one for each slot; 2 came"),
        (lambda s: s.step("abc"), "one text came"),
        (lambda s: s.step(["a", "b", 3]), "a message is text"),
        (lambda s: s.step(["a", "b", "\ud800"]), "lone surrogate"),
        (lambda s: s.act(["a", "b", ["c"]]), "an action of a game is text"),
    ],
)
def test_a_callers_mistake_is_told_and_changes_nothing(game, call, message):
    before = game.reset([1, 2, 3])
    with pytest.raises(UsageError, match=message):
        call(game)
    results = game.step(["a", "b", "c"])
    assert [result.info["spade"]["turn"] for result in results] == [1, 1, 1]
    assert game.reset([1, 2, 3]) == before


def test_playing_before_a_reset_and_after_the_end(guarded):
    session = guarded.open(GAME)
    with pytest.raises(EpisodeOver, match="was not begun"):
        session.step(["x"])
    session.close()
    session.close()
    with pytest.raises(UsageError, match="closed"):
        session.reset([1])


def test_tools_run_in_order_and_reveal_one_turn_a_call(desk):
    start, _ = desk.reset([3, 4])
    number = start.observation.removeprefix("Open drawer ").removesuffix(".")
    assert [tool["function"]["name"] for tool in start.info["spade"]["tools"]] == [
        "open_drawer",
        "count",
        "whisper",
        "shout",
        "jam",
    ]
    message = "<think>" + block("jam") + "</think>" + block("whisper")
    message += block("open_drawer", f'{{"number": {number}.0}}') + block("count")
    (result,) = desk.step([message], slots=[0])
    assert result.observation == (
        f"[1] (no output)\n[2] drawer {number} open\n[3] {NEW_INSTRUCTION}\n\n"
        "Next instruction: Count them."
    )
    assert (result.reward, result.terminated) == (0.0, False)
    assert result.info["spade"]["credit"] == pytest.approx(1 / 3)
    assert result.info["spade"]["action"] == [
        {"name": "whisper", "arguments": {}},
        {"name": "open_drawer", "arguments": {"number": int(number)}},
        {"name": "count", "arguments": {}},
    ]
    (result,) = desk.step([block("count")], slots=[0])
    assert result.observation == '{"open": 1}\n\nNext instruction: Do anything.'
    # The last criterion held when it was revealed: the next executed call completes it.
    (result,) = desk.step([block("nonsense")], slots=[0])
    assert not result.terminated
    (result,) = desk.step([block("whisper") + block("whisper")], slots=[0])
    assert result.observation == f"[1] (no output)\n[2] {NEW_INSTRUCTION}\n\n{ALL_DONE}"
    assert result[1:4] == (1.0, True, False)
    assert result.info["spade"]["credit"] == 1.0
    assert result.info["spade"]["solved"] is True


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("I think it is the left one.", REMINDER),
        (block("open_drawer", '{"number": "2"}'), "Error: number: '2' is a string, integer wanted"),
        (block("reset"), "Error: unknown tool 'reset'; available: count, jam, open_drawer"),
        (block("<answer>", '{"answer": "done"}'), "Error: unknown tool '<answer>'"),
        ("<answer>done</answer>", REMINDER),
        ("<tool_call>{", "Error: the text ends before the value does"),
        ([{"name": "count", "arguments": "{"}], "Error: arguments is a string that isn't valid"),
        ([("open_drawer", {"number": {1, 2}})], "Error: "),
    ],
)
def test_what_can_not_run_costs_the_turn_and_changes_nothing(desk, message, wanted):
    desk.reset([3, 3])
    (result,) = desk.step([message], slots=[0])
    assert result.observation.startswith(wanted)
    assert result.reward == 0.0
    assert result.info["spade"]["turn"] == 1
    (after,) = desk.step([block("count")], slots=[0])
    assert after.observation == '{"open": 0}'


def test_sixteen_calls_run_and_the_others_are_told(desk):
    desk.reset([3, 3])
    (result,) = desk.step([block("open_drawer", '{"number": 100}') * 18 + block("x")], slots=[0])
    lines = result.observation.split("\n")
    assert lines[15] == "[16] drawer 100 open"
    assert lines[16:] == [f"[{place}] {TOO_MANY}" for place in (17, 18, 19)]
    (after,) = desk.step([block("count")], slots=[0])
    assert after.observation == '{"open": 16}'


def test_a_recorded_action_replays_to_the_same_results(desk):
    number = desk.reset([3, 3])[0].observation.split()[-1].rstrip(".")
    for message in [
        "no call",
        block("count") + block("nonsense") + "<tool_call>",
        f"<tool_call><function=open_drawer><parameter=number>{number}</parameter></function>"
        "</tool_call>" + block("count"),
        block("open_drawer", '{"number": 1, "number": 2}'),
    ]:
        (played,) = desk.step([message], slots=[0])
        (replayed,) = desk.act([played.info["spade"]["action"]], slots=[1])
        assert replayed == played


def test_solutions_of_tools_are_messages_for_act(desk):
    desk.reset([8, 9])
    first, second = desk.solution()
    assert len(first) == len(second) == 3
    for calls in zip(first, second, strict=True):
        results = desk.act(list(calls))
    assert [result.terminated for result in results] == [True, True]


def test_a_group_of_tool_messages_takes_one_request_a_round(desk, monkeypatch):
    desk.reset([1, 2])
    asked = []
    tool = desk._child.tool

    def counted(slots, calls):
        asked.append(list(slots))
        return tool(slots, calls)

    monkeypatch.setattr(desk._child, "tool", counted)
    desk.step([block("whisper") * 3, "none" + block("x") + block("whisper")])
    assert asked == [[0, 1], [0], [0]]


FAULTS = [
    ("jam", "{}", EnvRaised, "SPD503", "AttributeError"),
    ("shout", '{"times": 20000}', EnvViolation, "SPD305", "20000 characters long"),
]


@pytest.mark.parametrize(("name", "arguments", "kind", "code", "message"), FAULTS)
def test_a_tools_fault_is_data(desk, name, arguments, kind, code, message):
    desk.reset([1, 2])
    faulty, healthy = desk.step([block("whisper") + block(name, arguments), block("count")])
    assert faulty[:4] == ("", 0.0, False, True)
    assert faulty.info["spade"]["fault"]["kind"] == kind.__name__
    assert faulty.info["spade"]["fault"]["code"] == code
    assert message in faulty.info["spade"]["fault"]["message"]
    assert isinstance(desk.faults[0], kind)
    assert desk.faults[1] is None
    assert healthy.observation == '{"open": 0}'
    with pytest.raises(EpisodeOver):
        desk.step([block("count")], slots=[0])
    assert desk.reset([1], slots=[0])[0].info["spade"]["fault"] is None
    assert desk.faults[0] is None


BROKEN_STEPS = [
    ('return "a", 1, True, False', "SPD402", "a 5-tuple is expected, not a tuple"),
    ("return None, 0.0, False, False, {}", "SPD402", "the text of step is a NoneType None"),
    ('return "", 0.0, False, False, {}', "SPD305", "is empty"),
    ('return "x" * 16385, 0.0, False, False, {}', "SPD305", "16385 characters long"),
    ('return "\\ud800", 0.0, False, False, {}', "SPD305", "does not encode"),
    ('return "a", 2.0, True, False, {}', "SPD403", "reward is 2.0; it lies between -1 and 1"),
    ('return "a", float("nan"), True, False, {}', "SPD403", "is nan, which is not finite"),
    ('return "a", -float("inf"), True, False, {}', "SPD403", "not finite"),
    ('return "a", True, True, False, {}', "SPD402", "reward is a bool True"),
    ('return "a", 0.0, 1, False, {}', "SPD402", "terminated is an int 1; bool is expected"),
    ('return "a", 0.0, False, None, {}', "SPD402", "truncated is a NoneType"),
    ('return "a", 0.0, False, False, None', "SPD402", "the info of step is a NoneType"),
    ('return "a", 0.0, False, False, {"x": {1}}', "SPD407", "not JSON"),
    ('return "a", 0.0, False, False, {"x": float("nan")}', "SPD407", "not JSON"),
    ('return "a", 0.0, False, False, {"x": "y" * 9000}', "SPD407", "bytes of JSON"),
    ("return 1 // 0", "SPD401", "ZeroDivisionError"),
]


@pytest.mark.parametrize(("line", "code", "message"), BROKEN_STEPS)
def test_every_wrong_reply_of_a_step_has_its_code(guarded, write, line, code, message):
    source = write(step=line).replace("attack", "x")
    with guarded.open(source, instances=2) as session:
        session.reset([1, 2])
        results = session.step(["a", "b"])
        for result, fault in zip(results, session.faults, strict=True):
            assert result[:4] == ("", 0.0, False, True)
            assert fault.code == code
            assert message in str(fault)
            assert result.info["spade"]["fault"]["message"] == str(fault)


BROKEN_RESETS = [
    ('return {"a": 1}', "SPD304", "(str, dict) is expected, not a dict"),
    ('return "a", None', "SPD304", "the info of reset is a NoneType"),
    ("return 3, {}", "SPD304", "the text of reset is an int 3"),
    ('return "", {}', "SPD305", "is empty"),
    ('return "a", {"x": object}', "SPD407", "not JSON"),
    ('raise ValueError("no")', "SPD303", "reset raised ValueError: no"),
]


@pytest.mark.parametrize(("line", "code", "message"), BROKEN_RESETS)
def test_every_wrong_reply_of_a_reset_has_its_code(guarded, write, line, code, message):
    with guarded.open(write(reset=line)) as session:
        (result,) = session.reset([1])
        assert result.observation == ""
        assert session.faults[0].code == code
        assert message in str(session.faults[0])
        assert result.info["spade"]["fault"]["code"] == code
        with pytest.raises(EpisodeOver):
            session.step(["x"])


def test_a_constructor_that_raises_is_told_apart(guarded, write):
    with guarded.open(write(init="raise ValueError('no')")) as session:
        session.reset([1])
        assert session.faults[0].code == "SPD302"


TURNS = [
    ("return [Turn('a', done=bool)] * 2", "SPD504", "2 turns; 3 to 5 are expected"),
    ("return [Turn('a', done=bool)] * 6", "SPD504", "6 turns"),
    ("return []", "SPD305", "empty"),
    ("return [Turn(t, done=bool) for t in ('a', 3, 'b')]", "SPD504", "is an int 3, not text"),
    ("return ['a', 'b', 'c']", "SPD303", "gave a str as item 1"),
    ("return [Turn('a', done=lambda s: s['x'])] * 3", "SPD505", "KeyError"),
]


@pytest.mark.parametrize(("line", "code", "message"), TURNS)
def test_user_turns_that_are_none(guarded, line, code, message):
    source = textwrap.dedent(
        f'''
        class TurnsEnv(ToolEnv):
            """Turns."""
            skill = "tool_selection"

            @tool
            def look(self) -> str:
                """Look."""
                return "seen"

            def user_turns(self):
                {line}
        '''
    )
    with guarded.open(source) as session:
        session.reset([1])
        if code == "SPD505":
            session.step([block("look")])
        assert session.faults[0].code == code
        assert message in str(session.faults[0])


DYING = '''
class DyingEnv(TextEnv):
    """Dies when told to."""

    skill = "causal_inference"

    def reset(self, seed=None):
        return f"alive {seed}", {}

    def step(self, action):
        if action == "loop":
            while True:
                pass
        return action, 0.0, action == "end", False, {}
'''


@pytest.mark.parametrize("isolation", ["class", "instance"])
def test_a_lost_child_takes_its_unfinished_episodes_and_no_other(bare, isolation):
    with bare.open(DYING, instances=3, isolation=isolation) as session:
        session.reset([1, 2, 3])
        session.step(["end"], slots=[0])
        (lost,) = session.step(["loop"], slots=[1])
        assert lost.truncated
        assert isinstance(session.faults[1], EnvTimeout)
        assert session.faults[0] is None
        if isolation == "class":
            assert session.faults[2] is session.faults[1]
            with pytest.raises(EpisodeOver):
                session.step(["x"], slots=[2])
        else:
            assert session.faults[2] is None
            assert session.step(["x"], slots=[2])[0].observation == "x"
        # A reset starts a fresh child where the old one is gone.
        again = session.reset([4, 5], slots=[1, 2])
        assert [result.observation for result in again] == ["alive 4", "alive 5"]
        assert session.faults == [None, None, None]


def test_a_solution_that_raises_is_a_fault(guarded, write):
    source = write(extra="def solution(self):\n    return 1 // 0")
    with guarded.open(source) as session:
        session.reset([1])
        assert session.solution() == [None]
        assert session.faults[0].code == "SPD601"


def test_opening_raises_what_is_wrong(guarded):
    with pytest.raises(InvalidEnvironment, match="SPD201"):
        guarded.open("x = 1\n")
    with pytest.raises(EnvRaised, match="ZeroDivisionError"):
        guarded.open(GAME + "1 / 0\n")


def test_a_published_class_takes_boxes_and_answers(guarded):
    source = textwrap.dedent(
        '''
        class EchoEnv:
            """Echo."""

            def __init__(self, max_turns=5, **kwargs):
                self.reset()

            def reset(self, seed=None):
                return "say"

            def step(self, action):
                return f"heard {action}", 20.0 if "win" in action else -20.0, True, False, {}
        '''
    )
    with guarded.open(source, instances=2) as session:
        assert session.spec.dialect == "published"
        session.reset([1, 2])
        won, lost = session.step(["so \\boxed{win}", " plain "])
        assert won.observation == "heard \\boxed{win}"
        assert won.info["spade"]["solved"] is True
        assert won.reward == 10.0
        assert lost.observation == "heard plain"
        assert (lost.reward, lost.info["spade"]["solved"]) == (-10.0, False)
