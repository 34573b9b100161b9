# ruff: noqa: E501
"""The published and gem forms, played through the contract's interface in the child's namespace."""

import textwrap

import pytest

from spade_runtime import dialects
from spade_runtime.contract import read
from spade_runtime.entropy import Entropy
from spade_runtime.foreign_library import TERMINAL_STATE
from spade_runtime.policy import check
from spade_runtime.views import namespace


class Setting:
    """One source, loaded as the child loads it."""

    def __init__(self, source):
        source = textwrap.dedent(source)
        result = check(source)
        assert result.errors == []
        self.reading = read(source)
        assert self.reading.findings == [] or self.reading.dialect == "gem"
        self.entropy = Entropy()
        self.names = namespace(self.entropy, policy=True, dialect=self.reading.dialect)
        exec(result.code, self.names)
        self.cls = self.names[self.reading.class_name]
        self.make = dialects.adapt(self.cls, dialect=self.reading.dialect, kind=self.reading.kind)

    def begin(self, seed):
        self.entropy.new(seed)
        env = self.make()
        return env, env.reset(seed)


PUBLISHED_GAME = r'''
class BeadEnv:
    """Say how many beads are in the bowl."""

    def __init__(self, max_turns=4, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        if seed is not None:
            random.seed(seed)
        self.turn_count = 0
        self.beads = Counter(choices("abc", k=randint(5, 30)))
        return f"A bowl of {sum(self.beads.values())} beads; name the count of 'a'."

    def step(self, action):
        self.turn_count += 1
        found = re.search(r"\\boxed\{(\d+)\}", action)
        if found and int(found.group(1)) == self.beads["a"]:
            return "Right.", 7.5, True, False, None
        return "No.", -0.5, False, self.turn_count >= self.max_turns, {}

    def solution(self):
        return "Count them, then answer with the number."
'''


def test_a_published_game():
    setting = Setting(PUBLISHED_GAME)
    assert (setting.reading.dialect, setting.reading.kind) == ("published", "game")
    assert setting.reading.max_turns == 4
    env, (first, info) = setting.begin(3)
    assert first.startswith("A bowl of ") and info == {}
    assert env.solution() is None
    assert env.step("5 or so") == ("No.", -0.5, False, False, {})
    count = env.inner.beads["a"]
    assert env.step(f"\\boxed{{{count}}}") == ("Right.", 7.5, True, False, {})
    env.close()
    assert setting.begin(3)[1] == (first, info)
    assert len({setting.begin(seed)[1][0] for seed in range(9)}) > 3


def test_a_published_game_with_a_list_as_solution_keeps_it():
    source = PUBLISHED_GAME.replace(
        'return "Count them, then answer with the number."',
        'return ["\\\\boxed{%d}" % self.beads["a"]]',
    )
    env, _ = Setting(source).begin(1)
    (action,) = env.solution()
    assert env.step(action)[2] is True


def test_numpy_stands_in_a_published_namespace_and_its_scalars_become_plain():
    pytest.importorskip("numpy")
    source = '''
    class GridEnv:
        """Sum a grid."""

        def __init__(self, max_turns=2, **kwargs):
            self.reset()

        def reset(self, seed=None):
            self.grid = np.array([[1, 2], [3, 4]])
            return "Sum?"

        def step(self, action):
            good = np.int64(self.grid.sum()) == 10
            return "Ok.", np.float64(1.0), np.bool_(good), np.False_, {"sum": self.grid.sum(), "rows": [self.grid[0]]}
    '''
    assert "numpy" in check(textwrap.dedent(source)).uses
    env, _ = Setting(source).begin(0)
    result = env.step("10")
    assert [type(v) for v in result[1:4]] == [float, bool, bool]
    assert type(result[4]["sum"]) is int
    assert result[4]["rows"] == [[1, 2]]


TOOLS = '''
class DeskEnv(ToolUseBaseEnv):
    """Work a help desk."""

    def __init__(self, max_turns=12, **kwargs):
        super().__init__(max_turns=max_turns, **kwargs)

    def reset(self, seed=None):
        rng = random.Random(seed)
        number = rng.randint(100, 999)
        self._number = number
        self._call_history = []
        self._state = {"open": [], "closed": []}
        text = {"type": "string"}
        self._tools = {
            "open_case": {"description": "Open.", "parameters": {"type": "object",
                "properties": {"case": text}, "required": ["case"]}},
            "close_case": {"description": "Close.", "parameters": {"type": "object",
                "properties": {"case": text, "note": text}, "required": ["case"]}},
            "list_cases": {"description": "List."},
        }
        self._user_messages = [f"Open case {number}.", f"Close case {number}.", "List the cases."]
        self._message_criteria = [
            lambda s: str(number) in s["open"],
            lambda s: str(number) in s["closed"],
            lambda s: s.get("listed"),
        ]
        self._current_msg = 0
        self._expected_answer = "done"
        return self._user_messages[0], {}

    def _advance_if_done(self):
        if self._current_msg < 3 and self._message_criteria[self._current_msg](self._state):
            self._current_msg += 1
            return f" NEXT {self._user_messages[self._current_msg]}" if self._current_msg < 3 else " ALL"
        return ""

    def tool_open_case(self, case):
        self._state["open"].append(case)
        return "opened" + self._advance_if_done()

    def tool_close_case(self, case, note=""):
        self._state["closed"].append(case)
        return "closed" + self._advance_if_done()

    def tool_list_cases(self):
        self._state["listed"] = True
        return self._state["open"]

    def _check_answer(self, answer):
        return answer.strip().lower() == "done" and self._current_msg == 3

    def tool_hidden(self):
        return "not declared"
'''


def done(env):
    return [turn.done(env.state) for turn in env._spade_turns]


def test_published_tools_advance_turn_by_turn():
    setting = Setting(TOOLS)
    assert (setting.reading.dialect, setting.reading.kind) == ("published", "tool_use")
    env, (first, info) = setting.begin(5)
    number = str(env.inner._number)
    assert first == f"Open case {number}." and info == {}
    assert [turn.text for turn in env._spade_turns][1:] == [
        f"Close case {number}.",
        "List the cases.",
    ]
    assert done(env) == [False, False, False]
    assert env.call("close_case", {"case": "1"}) == "closed"
    assert done(env) == [False, False, False]
    # The parent reveals the next instruction, so the class's own text is dropped.
    assert env.call("open_case", {"case": number}) == "opened"
    assert done(env) == [True, False, False]
    assert env.call(dialects.ANSWER, {"answer": "done"}).startswith("Not yet: instruction 2 of 3")
    assert env.call("close_case", {"case": number, "note": "x"}) == "closed"
    assert done(env) == [True, True, False]
    # This tool does not call _advance_if_done; its criterion counts all the same.
    assert env.call("list_cases", {}) == f'["{number}"]'
    assert done(env) == [True, True, True]
    assert env.inner._current_msg == 3
    assert env.call(dialects.ANSWER, {"answer": "done"}) == "Correct."
    assert len(env.inner._call_history) == 4


@pytest.mark.parametrize("name", ["hidden", "nothing", "open_case; x", "_check", "reset", ""])
def test_only_declared_tools_dispatch(name):
    env, _ = Setting(TOOLS).begin(1)
    with pytest.raises(LookupError):
        env.call(name, {})


def test_published_schemas():
    schemas, problems = dialects.tools(Setting(TOOLS).cls)
    assert problems == []
    assert [s["name"] for s in schemas] == ["open_case", "close_case", "list_cases"]
    assert schemas[1]["parameters"]["required"] == ["case"]
    assert schemas[2]["parameters"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("old", "new", "code", "part"),
    [
        ("tool_open_case(self, case)", "tool_open_case(self, number)", "SPD502", "'case'"),
        ("tool_open_case(self, case)", "tool_open_case(self, case, who)", "SPD502", "'who'"),
        ("def tool_list_cases", "def tool_list", "SPD502", "no method tool_list_cases"),
        ('"list_cases": {"description": "List."}', '"list_cases": "List."', "SPD501", "no object"),
        ('"required": ["case"]}},\n            "close', '"required": "case"}},\n            "close', "SPD501", "list"),
        ('note": text}, "required": ["case"]', 'note": text}, "required": ["case", "who"]', None, ""),
    ],
)  # fmt: skip
def test_schemas_that_disagree_with_the_method(old, new, code, part):
    assert old in TOOLS
    _, problems = dialects.tools(Setting(TOOLS.replace(old, new)).cls)
    if code is None:
        assert problems == []
    else:
        assert problems[0][0] == code and part in problems[0][1]


def test_a_class_that_can_not_be_reset_has_no_schemas_here():
    broken = TOOLS.replace("rng = random.Random(seed)", "rng = random.Random(1 // 0)")
    assert dialects.tools(Setting(broken).cls) == ([], [])
    with pytest.raises(ZeroDivisionError):
        Setting(broken).begin(1)


def test_a_task_without_messages_is_one_turn_that_the_answer_completes():
    source = '''
    class LookupEnv(ToolUseBaseEnv):
        """Find a price."""

        def reset(self, seed=None):
            self._price = random.Random(seed).randint(10, 99)
            self._tools = {"price": {"description": "Ask.", "parameters": {"type": "object", "properties": {}}}}
            self._expected_answer = f"${self._price}.00"
            return "What does it cost?", {}

        def tool_price(self):
            return self._price
    '''
    env, (first, _) = Setting(source).begin(2)
    assert [turn.text for turn in env._spade_turns] == [first]
    assert done(env) == [False]
    price = env.call("price", {})
    assert env.call(dialects.ANSWER, {"answer": "0"}) == "That is not the answer."
    assert done(env) == [False]
    assert env.call(dialects.ANSWER, {"answer": price}) == "Correct."
    assert done(env) == [True]


def test_an_answer_that_is_taken_at_once_shows():
    loose = TOOLS.replace(" and self._current_msg == 3", "")
    env, _ = Setting(loose).begin(2)
    assert done(env) == [False, False, False]
    env.call(dialects.ANSWER, {"answer": "done"})
    assert done(env) == [True, True, True]


def test_the_tool_base_may_be_imported():
    env, _ = Setting("from tool_use_base_env import ToolUseBaseEnv\n" + TOOLS).begin(1)
    assert isinstance(env, dialects.PublishedTools)


GEM = r'''
import random
from typing import Any, Optional, Tuple
from gem.core import Env
from gem.utils.constants import TERMINAL_STATE, LanguageGameReward
from gem.utils.parsing import extract_last_boxed_answer


class DiceSumEnv(Env):
    """Add the dice."""

    def __init__(self, complexity: int = 2, max_turns: Optional[int] = 5, **_):
        super().__init__()
        self.complexity = complexity
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed: Optional[int] = None) -> Tuple[str, dict]:
        super().reset(seed)
        self.dice = [random.randint(1, 6) for _ in range(self.complexity)]
        return f"Dice: {self.dice}.", {"suffix": "Say their sum.", "level": self.complexity}

    def step(self, action: str):
        answer = extract_last_boxed_answer(action)
        if answer is None:
            return "", LanguageGameReward.format_error_reward, False, False, {"suffix": "Box it."}
        if answer == str(sum(self.dice)):
            return TERMINAL_STATE, LanguageGameReward.success_reward, True, False, {"suffix": "x"}
        return "No.", LanguageGameReward.fail_reward, False, False, {}
'''


def test_a_gem_game():
    setting = Setting(GEM)
    assert (setting.reading.dialect, setting.reading.max_turns) == ("gem", 5)
    env, (first, info) = setting.begin(9)
    assert first.endswith(".\nSay their sum.") and info == {"level": 2}
    assert setting.begin(9)[1] == (first, info)
    assert env.step("none") == ("Box it.", -0.1, False, False, {})
    assert env.step("\\boxed{99}") == ("No.", 0.0, False, False, {})
    observation, reward, terminated, truncated, info = env.step(f"\\boxed{{{sum(env.inner.dice)}}}")
    assert (reward, terminated, truncated, info) == (1.0, True, False, {})
    assert observation == dialects.EPISODE_OVER != TERMINAL_STATE
    assert env.solution() is None


def test_gem_seeds_only_the_instance_that_plays():
    setting = Setting(GEM)
    first, other = setting.entropy.new(1), setting.entropy.new(2)
    setting.entropy.activate(first)
    env = setting.make()
    start = env.reset(1)
    setting.entropy.activate(other)
    setting.make().reset(2)
    setting.entropy.activate(first)
    setting.names["random"].random()
    assert env.reset(1) == start


def test_a_gem_class_may_have_another_name():
    reading = read(GEM.replace("DiceSumEnv", "DiceSumEnvGEM"))
    assert (reading.class_name, reading.dialect) == ("DiceSumEnvGEM", "gem")


def test_a_gem_class_without_step_can_not_be_made():
    with pytest.raises(TypeError, match="abstract"):
        Setting(GEM.replace("def step(", "def move(")).begin(1)


def test_contract_classes_are_left_alone():
    class AnyEnv:
        pass

    assert dialects.adapt(AnyEnv, dialect="contract", kind="game") is AnyEnv


@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("extract_last_boxed_answer", r"\boxed{a} and \boxed{b{c}}", "b{c}"),
        ("extract_last_boxed_answer", r"\boxed{a", None),
        ("last_boxed_only_string", r"x \boxed{2} y", r"\boxed{2}"),
        ("extract_last_tagged_answer", "<answer>1</answer><answer> 2 </answer>", "2"),
        ("extract_last_tagged_answer", "<answer>", None),
        ("extract_code_from_model", "```python\nx = 1\n```", "x = 1"),
        ("remove_boxed", "plain", None),
    ],
)
def test_gem_helpers(name, argument, expected):
    found = namespace(Entropy(), policy=True)
    module = found["__builtins__"]["__import__"]("gem.utils.parsing", None, None, (name,), 0)
    assert getattr(module, name)(argument) == expected
