"""The blind battery (SPD701): policies that do not understand the task must not win it.

Each policy is screened on a few seeds; one that won any of them plays 64, and is judged by the
lower end of its 95 % Wilson interval, which has to hold on three times as many seeds.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spade_runtime.dialects import ANSWER
from spade_runtime.validation.actions import (
    content_words,
    fill,
    has_placeholder,
    numbers,
    quoted,
    words,
)
from spade_runtime.validation.bench import Bench
from spade_runtime.validation.calls import ArgumentMaker, ToolCall, packed
from spade_runtime.validation.games import Player, always
from spade_runtime.validation.tooling import tools_of
from spade_runtime.validation.tooluse import recital

SEEDS = 64
CONFIRMED = 192
SCREEN = 12
"""Seeds of the screening: a policy that wins 36 % slips through once in two hundred times."""
_Z = 1.959963984540054
_CONSTANTS = ("yes", "no", "0", "1", "a", "true")
_LAST_ANSWERS = ("0", "1")
_ANSWERS = ("done", "0", "yes")
_COMMANDS = 5
_TOOL_CALLS = 40
_POLICIES_MAX = 64

_CHOICE = re.compile(r"\b[\w-]+(?:, [\w-]+)*,? or [\w-]+|\b[A-Za-z]+(?:/[A-Za-z]+)+")
_WORD = re.compile(r"[\w-]+")

Maker = Callable[[str, int], Player]
"""Makes a player from the first observation and a number that is its own for each seed."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A blind policy.

    Attributes:
        name: how a finding calls it.
        make: makes its player for one episode.
    """

    name: str
    make: Maker


def wilson_lower(wins: int, plays: int, z: float = _Z) -> float:
    """Lower end of the Wilson interval of a win rate.

    >>> round(wilson_lower(32, 64), 3), wilson_lower(0, 64)
    (0.381, 0.0)
    """
    if plays == 0 or wins == 0:
        return 0.0
    share = wins / plays
    middle = share + z * z / (2 * plays)
    spread = z * math.sqrt(share * (1 - share) / plays + z * z / (4 * plays * plays))
    return max(0.0, (middle - spread) / (1 + z * z / plays))


def _echo(_: str, __: int) -> Player:
    return lambda observation, turn: observation


def _last_number(first: str, _: int) -> Player:
    kept = ["0"]

    def act(observation: str, turn: int) -> str:
        kept[0] = (numbers(observation) or kept)[-1]
        return kept[0]

    return act


def _random_word(_: str, number: int) -> Player:
    chooser = random.Random(number)
    return lambda observation, turn: chooser.choice(words(observation[:4000]) or [""])


def _repeat_word(first: str, number: int) -> Player:
    return always(random.Random(number).choice(content_words(first[:4000]) or [""]))


def _in_turn(first: str, _: int) -> Player:
    commands = quoted(first) or [""]
    return lambda observation, turn: commands[turn % len(commands)]


def _filled_in_turn(first: str, number: int) -> Player:
    chooser = random.Random(number)
    commands = quoted(first) or [""]
    pieces = content_words(first[:4000]) or ["0"]

    def act(observation: str, turn: int) -> str:
        return fill(commands[turn % len(commands)], chooser.choice(pieces))

    return act


def _one_then(place: int, answer: str, turns: int, template: bool) -> Maker:
    """One command until the last turn, then a constant answer, bare or in another command."""

    def make(first: str, _: int) -> Player:
        commands = quoted(first) or [""]
        command = commands[place % len(commands)]
        holders = [c for c in commands if has_placeholder(c)] if template else []
        last = fill(holders[-1], answer) if holders else answer
        return lambda observation, turn: last if turn >= turns - 1 else command

    return make


def _one(place: int) -> Maker:
    def make(first: str, _: int) -> Player:
        commands = quoted(first) or [""]
        return always(commands[place % len(commands)])

    return make


def offered(openings: Sequence[str], limit: int = 6) -> list[str]:
    """Answers that every first observation offers: the words around its "or" and "/".

    >>> offered(["Is it left or right? (up/down)", "Again: left or right?"])
    ['left', 'right']
    """
    found: list[str] = []
    for text in openings[:1]:
        for hit in _CHOICE.finditer(text):
            found += [part for part in _WORD.findall(hit.group()) if part not in ("or", "either")]
    kept = [word for word in dict.fromkeys(found) if all(word in text for text in openings)]
    return kept[:limit]


def game_policies(turns: int, openings: Sequence[str]) -> list[Policy]:
    """The battery for games.

    Args:
        turns: the class's turn limit.
        openings: some first observations, which tell the commands and answers on offer.
    """
    battery = [
        Policy("empty", lambda _, __: always("")),
        *(
            Policy(f"constant {text!r}", lambda _, __, text=text: always(text))  # type: ignore[misc]
            for text in dict.fromkeys([*_CONSTANTS, *offered(openings)])
        ),
        Policy("echo", _echo),
        Policy("last number seen", _last_number),
        Policy("random word or number of the observation", _random_word),
        Policy("repeat a word of the first observation", _repeat_word),
    ]
    count = min(_COMMANDS, max((len(quoted(text)) for text in openings), default=0))
    if count:
        battery.append(Policy("quoted commands in turn", _in_turn))
        if any(has_placeholder(command) for text in openings for command in quoted(text)):
            battery.append(Policy("quoted commands in turn, filled at random", _filled_in_turn))
    for place in range(count):
        battery.append(Policy(f"quoted command {place + 1} again and again", _one(place)))
    if turns > 1:
        holders = any(has_placeholder(c) for text in openings for c in quoted(text))
        for place in range(count):
            for answer in _LAST_ANSWERS:
                for template in (False, True) if holders else (False,):
                    name = f"quoted command {place + 1} until the last turn, then {answer!r}"
                    battery.append(Policy(name, _one_then(place, answer, turns, template)))
    return battery


Trial = Callable[[Sequence[str], Sequence[int]], list[list[bool]]]
"""Plays the named policies on some seeds: for each policy, which seeds it solved."""


def hold(bench: Bench, names: Sequence[str], screen: int, trial: Trial) -> int:
    """Screen policies, judge those that won anything, and confirm those that won too often.

    With some twenty policies a task of four options would be refused now and then by chance; so
    what exceeds the limit on 64 seeds has to exceed it on three times as many.

    Returns:
        How many policies played more than the screening.
    """
    seeds = bench.stream.seeds("blind", CONFIRMED)
    first = dict(zip(names, trial(names, seeds[:screen]), strict=True))
    bench.charge()
    alive = [name for name in names if any(first[name])]
    suspects: list[str] = []
    for name, more in zip(alive, trial(alive, seeds[screen:SEEDS]), strict=True):
        first[name] = first[name] + more
        if wilson_lower(sum(first[name]), SEEDS) > bench.options.blind_win_limit:
            suspects.append(name)
    for name in suspects:
        (more,) = trial([name], seeds[SEEDS:])
        _report(bench, name, first[name] + more)
        if bench.findings.has("SPD701"):
            break
    return len(alive)


def _report(bench: Bench, name: str, solved: Sequence[bool]) -> None:
    wins, limit = sum(solved), bench.options.blind_win_limit
    lower = wilson_lower(wins, len(solved))
    if lower > limit:
        bench.found(
            "SPD701",
            f"a blind policy may win at most {limit:.0%}; '{name}' won {wins} of {len(solved)} "
            f"seeds (at least {lower:.0%} with 95 % confidence)",
        )


def audit_games(bench: Bench) -> str:
    """Let every policy play; report the first that wins too often."""
    table = bench.table(bench.child("main"))
    openings = [str(getattr(start, "observation", "")) for start in list(bench.starts.values())[:6]]
    battery = game_policies(bench.max_turns, openings)[: _POLICIES_MAX // bench.thrift]
    makers = {policy.name: policy.make for policy in battery}
    firsts: dict[int, str] = {}

    def trial(names: Sequence[str], seeds: Sequence[int]) -> list[list[bool]]:
        if not names:
            return []
        firsts.update(zip(seeds, table.openings(seeds), strict=True))
        where = [seed for _ in names for seed in seeds]
        players = [
            bench.worded(makers[name](firsts[seed], seed)) for name in names for seed in seeds
        ]
        solved = [play.solved for play in table.play(where, players, bench.max_turns)]
        return [solved[i : i + len(seeds)] for i in range(0, len(solved), len(seeds))]

    alive = hold(bench, list(makers), max(4, SCREEN // bench.thrift), trial)
    return f"{len(makers)} blind policies, {alive} of them on {SEEDS} seeds or more"


def audit_tools(bench: Bench) -> str:
    """Blind policies for tools: each tool in turn, or one free tool again and again."""
    tools = tools_of(bench)
    if not tools:
        return "no tools"
    maker = ArgumentMaker(tools, [], bench.stream.chooser("blind"))
    plain = [maker.plain(name) for name in tools]
    free = [call for call in plain if call[1] == b"{}"]
    battery: dict[str, list[ToolCall]] = {"each tool once": plain}
    battery |= {f"tool {call[0]} again and again": [call] * _TOOL_CALLS for call in free}
    if bench.dialect == "published":
        battery |= dict(_answering(plain, free))
    desk = bench.desk(bench.child("main"))

    def trial(names: Sequence[str], seeds: Sequence[int]) -> list[list[bool]]:
        found: list[list[bool]] = []
        for name in names:
            callers = [recital(battery[name])] * len(seeds)
            found.append([play.solved for play in desk.play(seeds, callers, _TOOL_CALLS)])
        return found

    hold(bench, list(battery), SCREEN, trial)
    return f"{len(battery)} blind policies"


def _answering(plain: list[ToolCall], free: list[ToolCall]) -> list[tuple[str, list[ToolCall]]]:
    """Policies that hand in an answer, where a class takes one."""
    battery: list[tuple[str, list[ToolCall]]] = []
    for text in _ANSWERS:
        said = (ANSWER, packed({"answer": text}))
        battery.append((f"answer {text!r} at once", [said]))
        battery.append((f"each tool once, then answer {text!r}", [*plain, said]))
        battery += [
            (f"tool {call[0]} until the limit, then answer {text!r}", [call] * 8 + [said])
            for call in free
        ]
    return battery
