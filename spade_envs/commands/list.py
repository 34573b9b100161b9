"""`spade list`: the environments that ship with the package, or those of a pool."""

from __future__ import annotations

import argparse
import json
from typing import Any

from spade_envs import suite
from spade_envs.commands.common import add_pool, aligned, check_skill, chosen_pool, json_rows
from spade_runtime.cli import Command
from spade_runtime.taxonomy import GAME_SKILLS, TOOL_SKILLS


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--skill", help="only this skill")
    parser.add_argument("--kind", choices=("game", "tool_use"), help="only this kind")
    add_pool(parser)
    parser.add_argument("--skills", action="store_true", help="list the skills and stop")
    parser.add_argument("--json", action="store_true", help="for machines")


def _rows(arguments: argparse.Namespace) -> list[tuple[Any, ...]]:
    skill, kind = arguments.skill, arguments.kind
    if (pool := chosen_pool(arguments)) is not None:
        from spade_envs.pool_index import Query

        query = Query(skill=skill, kind=kind)
        return pool.index.columns(query, "id", "kind", "skill", "max_turns", "title")
    return [
        (row["id"], row["kind"], row["skill"], row["max_turns"], row["title"])
        for row in suite.manifests().values()
        if skill in (None, row["skill"]) and kind in (None, row["kind"])
    ]


def _run(arguments: argparse.Namespace) -> int:
    check_skill(arguments.skill)
    if arguments.skills:
        rows = [(skill, "game") for skill in GAME_SKILLS] + [(s, "tool_use") for s in TOOL_SKILLS]
        print(json.dumps(dict(rows)) if arguments.json else aligned(rows, ("skill", "kind")))
        return 0
    heads = ("id", "kind", "skill", "turns", "title")
    found = _rows(arguments)
    if arguments.json:
        print(json_rows(heads, found))
    elif found:
        print(aligned(found, heads))
    else:
        print("no environment fits")
    return 0


command = Command(
    name="list", summary="the registered environments", configure=_configure, run=_run
)
