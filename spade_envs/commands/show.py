"""`spade show`: one environment's card."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from textwrap import indent
from typing import TYPE_CHECKING

from spade_envs.catalogue import Found, find, hint_of, turns_text
from spade_envs.commands.common import add_pool, chosen_pool, safe_lines, seed_number
from spade_envs.typed_calls import signature
from spade_runtime.cli import Command, add_isolation
from spade_runtime.records import Records
from spade_runtime.spec import BLIND_WIN_LIMIT, EnvSpec, IsolationLevel
from spade_runtime.validation.text import visible

if TYPE_CHECKING:
    from spade_envs.pool_index import Card


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="an id, a class name, a file, or a hash in the pool")
    add_pool(parser)
    add_isolation(parser)
    parser.add_argument(
        "--seed", type=seed_number, help="also show the first observation of a seed"
    )
    parser.add_argument("--source", action="store_true", help="print the source and nothing else")
    parser.add_argument("--json", action="store_true", help="print the manifest as JSON")


def _run(arguments: argparse.Namespace) -> int:
    found = find(arguments.id, chosen_pool(arguments))
    if arguments.source:
        print(safe_lines(found.path.read_text("utf-8", "replace"), 10_000))
        return 0
    spec, first = _opened(found, arguments.seed, arguments.isolation)
    if arguments.json:
        body = spec.model_dump(mode="json")
        if first is not None:
            body["observation"] = first
        print(json.dumps(body, indent=1))
        return 0
    print("\n".join(_card(found, spec)))
    if first is not None:
        print(f"\nseed {arguments.seed}:")
        print(indent(safe_lines(first), "  "))
    return 0


def _opened(found: Found, seed: int | None, level: IsolationLevel) -> tuple[EnvSpec, str | None]:
    """The manifest and, if a seed is given, its first observation; a bare file is opened."""
    if found.spec is not None and seed is None:
        return found.spec, None
    from spade_runtime.sandbox import SandboxPool

    with SandboxPool(level=level) as pool, pool.open(found.path) as session:
        first = None if seed is None else session.reset([seed])[0].observation
        return found.spec or session.spec, first


def _card(found: Found, spec: EnvSpec) -> Iterator[str]:
    yield visible(spec.title)
    yield ""
    facts = {
        "id": spec.id,
        "kind": spec.kind,
        "skill": spec.skill,
        "limit": turns_text(spec.max_turns),
        "dialect": spec.dialect,
        "source": str(found.path),
        "sha256": spec.sha256,
        "accepted": _accepted(found, spec),
    }
    if (hint := hint_of(found)) is not None:
        facts["hint"] = hint
    made = spec.provenance.model_dump(exclude_none=True)
    facts |= {key.replace("_", " "): str(value) for key, value in made.items() if value}
    facts |= _learned(found.card)
    width = max(map(len, facts))
    for key, value in facts.items():
        yield f"  {key.ljust(width)}  {visible(value)}"
    for tool in spec.tools:
        yield ""
        yield f"  {visible(signature(tool))}"
        yield f"      {visible(tool.description)}"


def _accepted(found: Found, spec: EnvSpec) -> str:
    """Whose verdict it is: a manifest's claim counts only where this machine reached it too."""
    records = Records()
    for profile in ("strict", "standard", "lenient"):
        if records.holds(spec.sha256, profile):
            return f"yes, {profile} profile, on this machine"
    if found.origin == "suite":
        return "yes, strict profile, by the package's tests"
    if (limit := records.laxer_limit(spec.sha256)) is not None:
        return (
            f"on this machine, with blind_win_limit {limit:g}, where the standard profile has "
            f"{BLIND_WIN_LIMIT:g}; check it with: spade validate {found.path}"
        )
    if spec.validation is not None:
        return (
            f"claimed for the {spec.validation.profile} profile; not checked on this machine; "
            f"do so with: spade validate {found.path}"
        )
    return f"not known; check it with: spade validate {found.path}"


def _learned(card: Card | None) -> dict[str, str]:
    if card is None or not card.plays:
        return {}
    facts = {"plays": str(card.plays)}
    if card.win_rate is not None:
        facts["win rate"] = f"{card.win_rate:.2f}"
    if card.win_rate_hinted is not None:
        facts["with hint"] = f"{card.win_rate_hinted:.2f}"
    if card.regret is not None:
        error = "" if card.regret_se is None else f" (standard error {card.regret_se:.3f})"
        facts["regret"] = f"{card.regret:+.3f}{error}"
    return facts


command = Command(name="show", summary="one environment's card", configure=_configure, run=_run)
