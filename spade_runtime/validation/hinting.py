"""Hints that give the answer away (SPD705)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from spade_runtime.validation.actions import content_words, numbers, quoted
from spade_runtime.validation.bench import Bench
from spade_runtime.validation.blind import SCREEN, SEEDS, wilson_lower
from spade_runtime.validation.games import Player, always, script
from spade_runtime.validation.text import shown

_WORD = re.compile(r"[^\W_]+(?:[-.'][^\W_]+)*", re.UNICODE)
_LITERALS = 24


def _tokens(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _telling(token: str) -> bool:
    """Whether a word is long enough to say something by itself."""
    return len(token) >= (2 if token.isdigit() else 3)


def _said(solution: Sequence[Any]) -> str:
    """All that a solution says, as one text."""
    parts: list[str] = []
    for item in solution:
        if isinstance(item, str):
            parts.append(item)
            continue
        for _, data in item:
            parts += [str(value) for value in _flat(json.loads(data))]
    return " ".join(parts)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in _flat(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in _flat(inner)]
    return [] if isinstance(value, bool) or value is None else [value]


def audit_hint(bench: Bench) -> str:
    """Compare the hint with the solutions, then follow its words blindly."""
    hint = bench.options.hint or ""
    _names_answers(bench, hint)
    if bench.kind == "game" and not bench.findings.has("SPD705"):
        _follow(bench, hint)
    return "the hint"


def _names_answers(bench: Bench, hint: str) -> None:
    """The hint must not hold what solutions say and first observations do not show."""
    said = {seed: _tokens(_said(solution)) for seed, solution in bench.solutions.items()}
    often = Counter(token for tokens in said.values() for token in tokens)
    in_hint = _tokens(hint)
    game = bench.kind == "game"
    schemas = set() if game else _tokens(bench.loaded.schemas.decode(errors="replace"))  # type: ignore[union-attr]
    named: dict[int, list[str]] = {}
    for seed, tokens in said.items():
        opening = _tokens(str(getattr(bench.starts[seed], "observation", ""))) | schemas
        # A plain word of every solution is a command of the game, not the answer of one seed.
        hidden = [
            token
            for token in sorted(tokens & in_hint - opening)
            if _telling(token) and not (game and token.isalpha() and often[token] == len(said))
        ]
        if hidden:
            named[seed] = hidden
    if said and len(named) / len(said) > bench.options.blind_win_limit:
        seed = min(named)
        bench.found(
            "SPD705",
            f"the hint names what the solution says and the first observation does not show, on "
            f"{len(named)} of {len(said)} seeds: {shown(', '.join(named[seed][:4]))}",
            seed=seed,
        )


def _follow(bench: Bench, hint: str) -> None:
    """Say what the hint says, word by word, and see whether that wins."""
    literals = list(dict.fromkeys([*quoted(hint), *numbers(hint), *content_words(hint)]))
    literals = literals[:_LITERALS]
    if not literals:
        return
    players: dict[str, Player] = {"its words in turn": script(literals)}
    if quoted(hint):
        commands = quoted(hint)
        players["its quoted words in turn"] = script(commands * (100 // len(commands) + 1))
    for text in literals:
        players[f"{text!r} again and again"] = always(text)
    table = bench.table(bench.child("main"))
    seeds = bench.stream.seeds("hint", SEEDS)
    names = list(players)
    where = [seed for _ in names for seed in seeds[:SCREEN]]
    players = {name: bench.worded(player) for name, player in players.items()}
    plays = table.play(
        where, [players[name] for name in names for _ in range(SCREEN)], bench.max_turns
    )
    limit = bench.options.blind_win_limit
    for place, name in enumerate(names):
        won = sum(play.solved for play in plays[place * SCREEN : (place + 1) * SCREEN])
        if not won:
            continue
        more = table.play(seeds[SCREEN:], [players[name]] * (SEEDS - SCREEN), bench.max_turns)
        won += sum(play.solved for play in more)
        if wilson_lower(won, SEEDS) > limit:
            bench.found(
                "SPD705",
                f"following the hint blindly must not win; saying {name} won {won} of {SEEDS} "
                "seeds",
            )
            return
