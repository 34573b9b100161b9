"""What `docs/contract.md` says is what the code does: its classes, lists and limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import pytest

import spade_envs
from spade_runtime import checks
from spade_runtime.contract import DEFAULT_MAX_TURNS, MAX_TURNS
from spade_runtime.curated import (
    MODULES,
    OPTIONAL_MODULES,
    STANDING_MODULES,
    STANDING_NAMES,
    VIRTUAL_ROOTS,
)
from spade_runtime.sandbox.toolrounds import CALLS_MAX
from spade_runtime.spec import Limits
from spade_runtime.taxonomy import GAME_SKILLS, TOOL_SKILLS
from spade_runtime.toolspec import RESERVED
from spade_runtime.validation import Validator

PAGE = (Path(__file__).parents[2] / "docs" / "contract.md").read_text(encoding="utf-8")
FLAT = " ".join(PAGE.split())
SOURCES = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
HINTS = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
EXAMPLES = list(zip(SOURCES, HINTS, strict=True))
KINDS = ["game", "tool_use"]


@pytest.fixture(scope="module")
def validator() -> Iterator[Validator]:
    with Validator() as opened:
        yield opened


@pytest.mark.parametrize(("example", "kind"), list(zip(EXAMPLES, KINDS, strict=True)), ids=KINDS)
def test_an_example_passes_the_strict_profile(
    validator: Validator, example: tuple[str, str], kind: str
) -> None:
    source, hint = example
    report = validator.validate(source, profile="strict", hint=hint.strip())
    assert (report.verdict, report.kind, report.findings) == ("accepted", kind, [])


def spoken(text: str) -> list[str]:
    """The code spans of a part of the page."""
    return re.findall(r"`([^`]+)`", text)


def part(start: str, end: str) -> str:
    assert PAGE.count(start) == 1, start
    return PAGE.partition(start)[2].partition(end)[0]


def test_the_list_of_modules_is_the_codes() -> None:
    listed = spoken(part("These modules may be imported:", "and, where they are installed"))
    assert listed == [name for name in MODULES if name.partition(".")[0] not in VIRTUAL_ROOTS]
    below = "networkx.algorithms"
    optional = spoken(part("and, where they are installed", "Each is offered"))
    full = [name if name.split(".")[0] in ("numpy", "networkx") else f"{below}.{name}"
            for name in optional]  # fmt: skip
    assert sorted(full) == sorted(OPTIONAL_MODULES)
    assert (MODULES["inspect"], MODULES["io"]) == ("signature", "StringIO")


def test_the_names_without_import_are_the_codes() -> None:
    text = part("These names stand in the file", "These modules may be imported:")
    names, _, modules = text.partition("- the modules")
    assert spoken(modules) == list(STANDING_MODULES)
    standing = {name for row in STANDING_NAMES.values() for name in row.split()}
    told = set(spoken(names)) - {"spade_runtime.authoring", "typing"}
    assert told <= standing
    assert standing - told == set(STANDING_NAMES["typing"].split()) - {"Literal"}


def test_the_skills_are_the_codes() -> None:
    rows = part("| kind | skills |", "## A game").splitlines()
    assert [spoken(row) for row in rows[2:4]] == [list(GAME_SKILLS), list(TOOL_SKILLS)]


def test_the_limits_are_the_codes() -> None:
    limits = Limits()
    assert f"at most {limits.source_bytes // 1024} KiB" in FLAT
    assert f"at most {limits.observation_chars:,} characters" in FLAT
    assert f"at most {limits.info_bytes // 1024} KiB" in FLAT
    assert f"up to {limits.printed_bytes // 1024} KiB a call" in FLAT
    assert (
        f"{limits.load_seconds:g} s to load, {limits.reset_seconds:g} s for a `reset`, "
        f"{limits.step_seconds:g} s for a `step` or a call, {limits.file_seconds:g} s for all"
    ) in FLAT
    assert f"{limits.memory_mib} MiB, with numpy or networkx {limits.numpy_memory_mib} MiB" in FLAT
    assert f"| 1 to {MAX_TURNS}: messages of an episode | {DEFAULT_MAX_TURNS} |" in PAGE
    assert f"returns {checks.USER_TURNS[0]} to {checks.USER_TURNS[1]} `Turn" in FLAT
    assert f"up to {CALLS_MAX} calls" in FLAT
    assert spoken(part("none of", ".")) == list(RESERVED)


def test_a_play_goes_as_the_page_says() -> None:
    spec = spade_envs.register(EXAMPLES[0][0])
    env = gym.make(spec.id)
    try:
        observation, _ = env.reset(seed=3, options={"hint": EXAMPLES[0][1].strip()})
        assert observation.endswith(f"Hint: {EXAMPLES[0][1].strip()}")
        for reward in (0.2, 0.2, 1.0):
            first, second = map(int, re.findall(r"(\d+) times (\d+)", observation)[0])
            product = str(first * second)
            message = rf"<think>\boxed{{0}}</think> It is \boxed{{{product}}}."
            observation, paid, terminated, truncated, info = env.step(message)
            assert (paid, terminated, truncated) == (reward, reward == 1.0, False)
            assert info["spade"]["action"] == product
        assert info["spade"]["solved"]
    finally:
        env.close()


def test_a_message_of_calls_goes_as_the_page_says() -> None:
    spec = spade_envs.register(EXAMPLES[1][0])
    env = gym.make(spec.id)
    try:
        observation, _ = env.reset(seed=3)
        lost = re.search(r"^(.*) lost a (\w+) (\w+)\.", observation)
        assert lost is not None
        owner, colour, thing = lost.groups()
        find = {"name": "find", "arguments": {"thing": thing, "colour": colour}}
        observation, _, _, _, info = env.step([find, find])
        assert "not run: new instruction" in observation
        assert info["spade"]["credit"] == pytest.approx(1 / 3)
        number = int(re.findall(r'"number": (\d+)', observation)[0])
        env.step([{"name": "give", "arguments": {"number": number, "owner": owner}}])
        note = {"name": "note", "arguments": {"lines": [str(number)]}}
        _, reward, terminated, _, info = env.step([note])
        assert (reward, terminated, info["spade"]["solved"]) == (1.0, True, True)
    finally:
        env.close()
