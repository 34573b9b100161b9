"""The contract reader: class, kind, dialect, metadata and signatures from the source alone."""

import textwrap

import pytest

from spade_runtime import contract
from spade_runtime.contract import read
from spade_runtime.taxonomy import GAME_SKILLS, TOOL_SKILLS

HEAD = '"""Doc."""\nskill = "optimization"\n'
GAME = (
    "def reset(self, seed=None): return 'x', {}\n"
    "def step(self, action): return 'x', 0.0, True, False, {}\n"
)


def env(body="", *, bases="TextEnv", name="CrateEnv", head=HEAD, methods=GAME, before=""):
    inside = textwrap.indent(head + body + "\n" + methods, "    ")
    return f"{before}class {name}({bases}):\n{inside}"


def codes(source):
    return [(f.code, f.line) for f in read(source).findings]


def test_a_plain_game():
    reading = read(
        env("max_turns = 7\ntitle = 'Crates'\nversion = 2\ndef solution(self): return []")
    )
    assert reading.findings == []
    assert (reading.class_name, reading.kind, reading.dialect) == ("CrateEnv", "game", "contract")
    assert (reading.title, reading.skill, reading.max_turns, reading.version) == (
        "Crates",
        "optimization",
        7,
        2,
    )
    assert reading.docstring == "Doc." and reading.has_solution


def test_defaults():
    reading = read(env())
    assert (reading.title, reading.max_turns, reading.version) == ("Doc.", 20, 0)
    assert not reading.has_solution
    assert (
        read(env(head="skill = 'optimization'\n", name="CrateShuffle2DEnv")).title
        == "Crate Shuffle 2D"
    )


def test_a_tool_environment():
    source = env(bases="ToolEnv", head='"""Doc."""\nskill = "tool_selection"\n', methods="")
    assert read(source).kind == "tool_use"
    assert codes(source) == []
    imported = source.replace("ToolEnv", "Base")
    before = "from spade_runtime.authoring import ToolEnv as Base\n"
    assert read(before + imported).kind == "tool_use"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 1", [("SPD201", None)]),
        ("", [("SPD201", None)]),
        (env(name="CrateGame"), [("SPD201", 1)]),
        (env(name="_CrateEnv"), [("SPD201", 1)]),
        (env(name="Env"), [("SPD201", 1)]),
        ("def f():\n" + textwrap.indent(env(), "    "), [("SPD201", None)]),
        (env() + "\n" + env(name="OtherEnv"), [("SPD202", 8)]),
    ],
)
def test_one_environment_class(source, expected):
    assert codes(source) == expected
    assert read(source).class_name is None


def test_a_base_in_the_same_file_does_not_count():
    source = env(name="BaseEnv") + "\n" + env(name="CrateEnv", bases="BaseEnv", methods="")
    reading = read(source)
    assert (reading.class_name, reading.findings) == ("CrateEnv", [])
    middle = (
        env(name="BaseEnv") + "\nclass Middle(BaseEnv): pass\nclass RealEnv(Middle):\n    'D'\n"
    )
    assert read(middle).class_name == "RealEnv"
    assert read(middle).skill == "optimization"
    assert read(env() + "\nclass _HelperEnv: pass\nclass Tool: pass").class_name == "CrateEnv"


@pytest.mark.parametrize(
    "body",
    [
        "max_turns = 0",
        "max_turns = 101",
        "max_turns = -3",
        "max_turns = True",
        "max_turns = 7.0",
        "max_turns = '7'",
        "max_turns = None",
        "max_turns = 3 * 4",
        "max_turns = LIMIT",
        "max_turns: int = len('abc')",
        "@property\ndef max_turns(self): return 5",
        "version = -1",
        "version = '1'",
        "title = ''",
        "title = f'a{1}'",
        "title = 3",
        "skill = 4",
        "skill = SKILL",
        "skill = ['optimization']",
    ],
)
def test_metadata_has_to_be_literal_and_in_range(body):
    reading = read(env(body))
    assert [f.code for f in reading.findings] == ["SPD204"]
    finding = reading.findings[0]
    assert finding.line in (4, 5) and finding.column is not None
    assert body.split()[0].rstrip(":") in finding.message or "property" in body


@pytest.mark.parametrize(
    "body", ["max_turns = 1", "max_turns = 100", "max_turns: int = 5", "max_turns: int"]
)
def test_metadata_at_the_edges(body):
    assert codes(env(body)) == []


@pytest.mark.parametrize(
    ("head", "bases", "number"),
    [
        ('"""D."""\n', "TextEnv", 1),
        ("skill = 'optimization'\n", "TextEnv", 1),
        ("pass\n", "TextEnv", 2),
        ('"""D."""\nskill = "cooking"\n', "TextEnv", 1),
        ('"""D."""\nskill = "optimization"\n', "ToolEnv", 1),
        ('"""D."""\nskill = "tool_selection"\n', "TextEnv", 1),
    ],
)
def test_skill_and_docstring(head, bases, number):
    found = codes(env(head=head, bases=bases, methods="" if bases == "ToolEnv" else GAME))
    assert [c for c, _ in found] == ["SPD205"] * number


@pytest.mark.parametrize(
    ("reset", "step", "wrong"),
    [
        ("self, seed=None", "self, action", None),
        ("self, seed", "self, action", None),
        ("self, *, seed=None", "self, action=''", None),
        ("self, **options", "self, *parts", None),
        ("self, seed=None, options=None", "self, action, *, quiet=True", None),
        ("self", "self, action", "takes no seed"),
        ("self, number=None", "self, action", "takes no seed"),
        ("self, seed, /", "self, action", "takes no seed"),
        ("self, seed, level", "self, action", "'level'"),
        ("self, seed=None, *, level", "self, action", "'level'"),
        ("", "self, action", "no self"),
        ("self, seed=None", "self", "takes no action"),
        ("self, seed=None", "self, action, turn", "'turn'"),
        ("self, seed=None", "self, *, action", "takes no action"),
        ("self, seed=None", "", "no self"),
    ],
)
def test_signatures(reset, step, wrong):
    methods = f"def reset({reset}): pass\ndef step({step}): pass\n"
    reading = read(env(methods=methods))
    if wrong is None:
        assert reading.findings == []
    else:
        (finding,) = reading.findings
        assert finding.code == "SPD203" and wrong in finding.message
        assert finding.line in (5, 6)


@pytest.mark.parametrize("missing", ["reset", "step"])
def test_missing_methods(missing):
    methods = "\n".join(m for m in GAME.splitlines() if f"def {missing}" not in m)
    reading = read(env(methods=methods))
    assert [(f.code, f.line) for f in reading.findings] == [("SPD203", 1)]
    assert missing in reading.findings[0].message


def test_methods_of_a_base_and_assigned_ones_count():
    base = env(name="_Base", bases="object")
    assert codes(base + "\nclass CrateEnv(_Base):\n    'D'\n    skill = 'optimization'\n") == []
    assigned = "def _go(self, action): pass\ndef reset(self, seed=None): pass\nstep = _go\n"
    assert codes(env(methods=assigned)) == []
    static = "@staticmethod\ndef reset(seed=None): pass\n@staticmethod\ndef step(action): pass\n"
    assert codes(env(methods=static)) == []


def test_a_tool_environment_writes_neither_reset_nor_step():
    source = env(bases="ToolEnv", head='"""D."""\nskill = "tool_selection"\n')
    assert [c for c, _ in codes(source)] == ["SPD203", "SPD203"]


PUBLISHED = (
    "def __init__(self, max_turns=16, **kwargs):\n    self.reset()\n"
    "def reset(self, seed=None):\n    return 'go'\ndef step(self, action): pass\n"
)


@pytest.mark.parametrize(
    ("source", "dialect", "kind"),
    [
        (env(head="", bases="object", methods=PUBLISHED), "published", "game"),
        (
            env(head="", bases="object", methods=PUBLISHED.replace("self.reset()", "pass")),
            "published",
            "game",
        ),
        (
            env(head="", bases="object", body="def __init__(self, max_turns=3, **kw): pass"),
            "published",
            "game",
        ),
        (env(bases="object", methods=PUBLISHED), "contract", "game"),
        (env(head="", bases="TextEnv", methods=PUBLISHED), "contract", "game"),
        (env(head="", bases="ToolUseBaseEnv", methods="pass"), "published", "tool_use"),
        ("from gem.core import Env\n" + env(head="", bases="Env"), "gem", "game"),
        ("from gem.core import Env as Base\n" + env(head="", bases="Base"), "gem", "game"),
        ("import gem\n" + env(head="", bases="gem.Env"), "gem", "game"),
        ("import gem.core\n" + env(head="", bases="gem.core.Env"), "gem", "game"),
        ("class Env: pass\n" + env(bases="Env"), "contract", "game"),
        (env(bases="object"), "contract", "game"),
        (
            env(head='"""D."""\n', body="def __init__(self, max_turns=3): pass", bases="object"),
            "contract",
            "game",
        ),
    ],
)
def test_dialects(source, dialect, kind):
    reading = read(source)
    assert (reading.dialect, reading.kind) == (dialect, kind)


def test_other_dialects_take_their_turns_from_the_constructor():
    assert read(env(head="", bases="object", methods=PUBLISHED)).max_turns == 16
    wide = PUBLISHED.replace("16", "400")
    assert read(env(head="", bases="object", methods=wide)).max_turns == 100
    optional = "def __init__(self, complexity: int = 1, max_turns: Optional[int] = 30, **_): pass\n"
    source = "from gem.core import Env\n" + env(head="", bases="Env", methods=optional + GAME)
    assert read(source).max_turns == 30
    assert codes(env(head="", bases="object", methods=PUBLISHED)) == []


@pytest.mark.parametrize("skill", GAME_SKILLS + TOOL_SKILLS)
def test_a_skill_belongs_to_one_kind(skill):
    head = f'"""Doc."""\nskill = {skill!r}\n'
    tools = "def setup(self, rng): ...\ndef user_turns(self): ...\n"
    as_game, as_tools = env(head=head), env(head=head, bases="ToolEnv", methods=tools)
    kind = "game" if skill in GAME_SKILLS else "tool_use"
    for source in (as_game, as_tools):
        reading = read(source)
        wrong = [] if reading.kind == kind else ["SPD205"]
        assert [f.code for f in reading.findings] == wrong


def test_a_title_is_one_short_line():
    long = read(env(head='"""' + "word " * 900 + '"""\nskill = "optimization"\n'))
    assert len(long.title) == contract.TITLE_CHARS


def test_nothing_runs():
    assert read("raise SystemExit\n" + env()).class_name == "CrateEnv"
