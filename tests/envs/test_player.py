"""What a person types, and what the terminal shows."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from spade_envs import suite
from spade_envs.agents import RandomAgent
from spade_envs.player import Player
from spade_envs.typed_calls import signature, typed_call
from spade_runtime.errors import UsageError
from spade_runtime.sandbox import SandboxPool
from spade_runtime.spec import ToolSpec

LEND = ToolSpec(
    name="lend",
    parameters={
        "type": "object",
        "required": ["tag"],
        "properties": {
            "tag": {"type": "string"},
            "days": {"type": "integer"},
            "flags": {"type": "array", "items": {"type": "string"}},
        },
    },
)

LOUD = '''
class LoudEnv(TextEnv):
    """Say yes to a shouting environment."""

    skill = "logical_deduction"
    max_turns = 3

    def reset(self, seed=None):
        return "\\x1b[31m[bold]red[/bold] alert\\u202e", {}

    def step(self, action):
        good = action == "yes"
        return "[link=x]done[/link]", 1.0 if good else 0.25, good, False, {}
'''


def play(
    sandbox: SandboxPool, source: Any, lines: list[str], *, width: int = 100, **options: Any
) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    typed = iter(lines)

    def ask(_: str) -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    with sandbox.open(source) as session:
        Player(session, console, ask).play(7, **options)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    "line",
    [
        "lend(tag='K12', days=3)",
        "lend('K12', 3)",
        "lend(K12, days=3)",
        "lend K12 3",
        'lend tag="K12" days=3',
        "  lend  K12 days=3 ",
    ],
)
def test_calls_are_read_as_people_type_them(line: str) -> None:
    assert typed_call(line, [LEND]) == {"name": "lend", "arguments": {"tag": "K12", "days": 3}}


def test_text_stays_text_and_lists_are_read() -> None:
    assert typed_call("lend 007", [LEND])["arguments"] == {"tag": "007"}
    call = typed_call("""lend K1 flags='["a", "b"]'""", [LEND])
    assert call["arguments"] == {"tag": "K1", "flags": ["a", "b"]}
    assert typed_call("lend(tag='a=b')", [LEND])["arguments"] == {"tag": "a=b"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("lent K12", "did you mean lend?"),
        ("", "tools are lend"),
        ("lend 'K12", "close the quotes"),
        ("lend(tag=open('x'))", "can't be read"),
        ("lend(tag=)", "can't be read"),
        ("lend 1 2 3 4", "at most 3 arguments"),
    ],
)
def test_what_is_no_call_is_answered(line: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("?", r"\?")):
        typed_call(line, [LEND])


def test_signatures_show_what_may_be_left_out() -> None:
    assert signature(LEND) == "lend(tag, [days], [flags])"


def test_text_of_environments_can_not_steer_the_terminal(sandbox: SandboxPool) -> None:
    shown = play(sandbox, LOUD, ["no", "yes"])
    assert "\x1b" not in shown and "\u202e" not in shown
    assert "\\x1b[31m[bold]red[/bold] alert\\u202e" in shown
    assert "[link=x]done[/link]" in shown
    assert "reward +0.25" in shown and "Solved in 2 turns, rewards 1.25 in all." in shown


def test_a_person_can_ask_and_leave(sandbox: SandboxPool) -> None:
    lines = [":help", ":hint", ":again", ":nonsense", "", ":quit"]
    shown = play(sandbox, LOUD, lines, hint="Agree.")
    assert "Hint: Agree." in shown and "There is no command :nonsense" in shown
    assert "Type a message, or :help." in shown and "Left after 0 turns." in shown


def test_help_tells_of_calls_only_where_there_are_tools(sandbox: SandboxPool) -> None:
    assert "lend(" not in play(sandbox, LOUD, [":help", ":quit"])
    desk = suite.paths()["MapRoomEnv"].read_text()
    shown = play(sandbox, desk, [":help", ":nonsense", ":quit"])
    assert shown.count("Type calls: lend(tag='K12', days=3)") == 2


def test_descriptions_of_tools_keep_their_column(sandbox: SandboxPool) -> None:
    desk = suite.paths()["MapRoomEnv"].read_text()
    rows = play(sandbox, desk, [":quit"], width=50).splitlines()
    start = next(place for place, row in enumerate(rows) if row.startswith("  line_km("))
    assert rows[start + 1].startswith("      Distance between two towns")
    assert rows[start + 2].startswith("      ") and rows[start + 2].strip()


@pytest.mark.parametrize(
    ("names", "said"),
    [((), "no arguments"), (("a",), "one argument: a"), (("a", "b"), "at most 2")],
)
def test_too_many_arguments_are_counted(names: tuple[str, ...], said: str) -> None:
    tool = ToolSpec(name="t", parameters={"properties": {name: {} for name in names}})
    with pytest.raises(UsageError, match=f"t takes {said}"):
        typed_call("t 1 2 3", [tool])


def test_the_end_of_input_leaves(sandbox: SandboxPool) -> None:
    assert "Left after 1 turn." in play(sandbox, LOUD, ["no"])


def test_a_limit_ends_the_play(sandbox: SandboxPool) -> None:
    shown = play(sandbox, LOUD, ["no", "no"], max_turns=2)
    assert "Not solved: out of turns after 2 turns" in shown


def test_tools_are_listed_and_called(sandbox: SandboxPool) -> None:
    lines = ["open_dome", "Rain!", "expose(seconds=5)"]
    shown = play(sandbox, suite.paths()["ObservatoryNightEnv"], lines)
    assert (
        "flip_mount(side: east|west)" in shown
        and "open_dome([code])" in shown
        and "wind lock engaged" in shown
    )
    assert "there is no tool 'Rain!'" in shown and "the dome is closed" in shown


def test_an_agent_can_be_watched(sandbox: SandboxPool) -> None:
    shown = play(sandbox, suite.paths()["MapRoomEnv"], [], agent=RandomAgent(), max_turns=3)
    assert shown.count("turn 3 of 3") == 1 and "Not solved" in shown
