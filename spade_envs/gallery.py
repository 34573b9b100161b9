"""Writes the suite's index and `docs/gallery` from the environments themselves.

Run it after a change of the suite: `python -m spade_envs.gallery`. A test fails when what is
written is not what the environments say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spade_envs import suite
from spade_envs.agents import SolutionAgent
from spade_envs.catalogue import turns_text
from spade_envs.episodes import Episode
from spade_envs.rolling import roll
from spade_runtime.sandbox import SandboxPool
from spade_runtime.spec import EnvSpec
from spade_runtime.taxonomy import GAME_SKILLS, TOOL_SKILLS

SEED = 7  # of the episodes that the gallery shows
_INDEX = Path(suite.__file__).parent / "index.json"


def build() -> tuple[dict[str, EnvSpec], dict[str, Episode]]:
    """Open every environment and play its solution once.

    Returns:
        Manifest and solved episode of each class, by class name.
    """
    specs: dict[str, EnvSpec] = {}
    episodes: dict[str, Episode] = {}
    with SandboxPool() as pool:
        for name, path in suite.paths().items():
            with pool.open(path) as session:
                hint = path.with_suffix(".hint.txt").read_text("utf-8").strip()
                specs[name] = session.spec.model_copy(update={"hint": hint})
                episodes[name] = next(roll(session, SolutionAgent(), [SEED]))
    return specs, episodes


def index_text(specs: dict[str, EnvSpec]) -> str:
    """The content of `index.json`."""
    rows = {name: spec.model_dump(mode="json", exclude_none=True) for name, spec in specs.items()}
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def pages(specs: dict[str, EnvSpec], episodes: dict[str, Episode]) -> dict[str, str]:
    """The files of `docs/gallery` by name: an overview, and a page for each skill."""
    by_skill = {
        skill: [name for name, spec in specs.items() if spec.skill == skill]
        for skill in (*GAME_SKILLS, *TOOL_SKILLS)
    }
    overview = [
        "# Gallery",
        "",
        f"The {len(specs)} environments that ship with the package, each accepted in the strict "
        "profile. This folder is written by `python -m spade_envs.gallery`.",
        "",
    ]
    files = {}
    for skill, names in by_skill.items():
        if not names:
            continue
        title = skill.replace("_", " ").capitalize()
        overview += [
            f"## [{title}]({skill}.md)",
            "",
            "| id | task | turns |",
            "| --- | --- | --- |",
        ]
        overview += [
            f"| `{specs[name].id}` | {specs[name].title} | {specs[name].max_turns} |"
            for name in names
        ]
        overview.append("")
        parts = [part for name in names for part in _section(name, specs[name], episodes[name])]
        files[f"{skill}.md"] = "\n".join([f"# {title}", "", *parts])
    return {"README.md": "\n".join(overview), **files}


def _section(name: str, spec: EnvSpec, episode: Episode) -> Iterator[str]:
    source = suite.paths()[name].name
    yield f"## {name.removesuffix('Env')}"
    yield ""
    yield f"{spec.title}"
    yield ""
    yield f"`{spec.id}`, {turns_text(spec.max_turns)}, [source](../../spade_envs/suite/{source})"
    yield ""
    for tool in spec.tools:
        arguments = ", ".join(tool.parameters.get("properties", {}))
        yield f"- `{tool.name}({arguments})`: {tool.description}"
    if spec.tools:
        yield ""
    yield f"Hint: {spec.hint}"
    yield ""
    yield f"Seed {SEED}, played by its own solution:"
    yield ""
    yield "```text"
    yield episode.observations[0]
    steps = zip(episode.actions, episode.observations[1:], episode.rewards, strict=True)
    for action, observation, reward in steps:
        yield ""
        yield "> " + _shown(action)
        yield observation + (f"   [{reward:+g}]" if reward else "")
    yield "```"
    yield ""


def _shown(action: Any) -> str:
    if isinstance(action, str):
        return action
    return "\n> ".join(call_text(call) for call in action)


def call_text(call: dict[str, Any]) -> str:
    """A tool call as a person reads and types it.

    >>> call_text({"name": "lend", "arguments": {"tag": "K12", "days": 3}})
    "lend(tag='K12', days=3)"
    """
    arguments = ", ".join(f"{name}={value!r}" for name, value in call["arguments"].items())
    return f"{call['name']}({arguments})"


def write(docs: Path) -> None:
    """Write the index beside the environments, and the gallery below `docs`."""
    specs, episodes = build()
    _INDEX.write_text(index_text(specs), encoding="utf-8")
    folder = docs / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(specs, episodes).items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).parents[1] / "docs")
