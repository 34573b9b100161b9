"""Why a configuration can't be: unknown keys, values of a wrong form, combinations that clash."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from spade_runtime.taxonomy import GAME_SKILLS, TOOL_SKILLS
from spade_train.config_values import unusable
from spade_train.skills import kind_of, mixed_span

if TYPE_CHECKING:
    from pydantic import ValidationError

    from spade_train.config import RunConfig


# More names than this are no help in a line.
LISTED = 24


def unknown_key(key: str, known: Iterable[str], what: str = "configuration key") -> str:
    """Return the message about a key that does not exist, with the nearest one that does."""
    return f"unknown {what} {key!r}; {_nearest(key, known)}"


def _nearest(word: str, known: Iterable[str]) -> str:
    choices = list(known)
    near = get_close_matches(word, choices, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    if len(choices) > LISTED:
        return "none is named like it; `spade train --dry-run` prints them all"
    return "known are " + ", ".join(sorted(choices))


def readable(error: ValidationError) -> str:
    """Return the first complaint of pydantic in a person's words: key, value, what is allowed."""
    first = error.errors(include_url=False)[0]
    # Further parts name the branch of a union, which tells a person nothing; indices do.
    key = ".".join(str(p) for i, p in enumerate(first["loc"]) if i == 0 or isinstance(p, int))
    if first["type"] == "missing":
        return f"the configuration has no value for {key!r}; start from a preset, or add it"
    if first["type"] == "literal_error":
        return f"{key}={first['input']!r} is not possible; it is {first['ctx']['expected']}"
    return f"{key}={first['input']!r} is not possible: {_wanted(first)}"


# What to write instead, by the kind of pydantic's complaint and with what it knows of the limits.
_WANTED = {
    "int_parsing": "write a whole number",
    "int_type": "write a whole number",
    "int_from_float": "write a whole number",
    "float_parsing": "write a number",
    "float_type": "write a number",
    "bool_parsing": "write true or false",
    "bool_type": "write true or false",
    "string_type": "write a text",
    "string_too_short": "write a name",
    "tuple_type": "write a list, such as [first,second]",
    "greater_than_equal": "write {ge:g} or more",
    "greater_than": "write a number above {gt:g}",
    "less_than_equal": "write {le:g} or less",
    "less_than": "write a number below {lt:g}",
}


def _wanted(complaint: Mapping[str, Any]) -> str:
    known = _WANTED.get(complaint["type"])
    if known is not None:
        return known.format(**complaint.get("ctx", {}))
    text: str = complaint["msg"]
    return text[0].lower() + text[1:]


def impossible(config: RunConfig) -> Iterator[str]:
    """Yield the reasons why a combination of values can't run."""
    yield from unusable(config)
    yield from _schedule(config)
    yield from _plays(config)
    yield from _skills(config)
    yield from _tokens(config)
    yield from _rewards(config)
    yield from _designer(config)


def _schedule(config: RunConfig) -> Iterator[str]:
    delay, interval = config.designer_delay, config.regenerate_every
    if delay % interval:
        yield (
            f"designer_delay={delay} is no positive multiple of regenerate_every={interval}: "
            "a design's window of plays closes only when its pool is replaced; "
            f"use designer_delay={max(1, round(delay / interval)) * interval}"
        )


def _plays(config: RunConfig) -> Iterator[str]:
    plays = config.group_plays
    if plays < 2:
        yield (
            f"seeds_per_group={config.seeds_per_group} x plays_per_seed={config.plays_per_seed} "
            "gives a group of one play, which has no advantage; use at least two"
        )
    if config.hinted_plays > plays:
        yield (
            f"hinted_plays={config.hinted_plays} exceeds the {plays} unhinted plays that it is "
            f"paired with (seeds_per_group x plays_per_seed); use {plays} at most"
        )
    if config.hinted_plays == 0 and config.objective in ("blend", "regret"):
        yield (
            f"hinted_plays=0 leaves objective={config.objective} without a regret; "
            "use objective=anchor, or play with the hint"
        )


def _skills(config: RunConfig) -> Iterator[str]:
    taxonomy = {"games": GAME_SKILLS, "tools": TOOL_SKILLS}.get(
        config.setting, GAME_SKILLS + TOOL_SKILLS
    )
    for skill in config.skills:
        if skill not in taxonomy:
            where = f"setting={config.setting}"
            yield f"unknown skill {skill!r} of {where}; {_nearest(skill, taxonomy)}"
    if len(set(config.skills)) < len(config.skills):
        yield f"skills={list(config.skills)} names a skill twice"
    if missing := [k for k in config.kinds if k not in map(kind_of, config.skill_pool)]:
        yield (
            f"setting={config.setting} with skills={list(config.skills)} has none of kind "
            f"{missing[0]}; name one, or use the setting of the other kind"
        )
    elif config.setting == "mixed":
        span = mixed_span(config.skill_pool)
        if config.skills_per_regeneration < span <= config.environments:
            yield (
                f"skills_per_regeneration={config.skills_per_regeneration} with setting=mixed "
                f"gives pools of one kind; use at least {span}"
            )
    asked = min(config.skills_per_regeneration, len(config.skill_pool))
    if asked > config.environments:
        yield (
            f"skills_per_regeneration={config.skills_per_regeneration} exceeds "
            f"environments={config.environments}: each skill needs a slot"
        )


def _tokens(config: RunConfig) -> Iterator[str]:
    for key in ("agent_max_tokens", "designer_max_tokens", "hint_max_tokens"):
        value = getattr(config, key)
        if value >= config.context_tokens:
            yield (
                f"{key}={value} leaves no room for a prompt in "
                f"context_tokens={config.context_tokens}; lower the one or raise the other"
            )


def _rewards(config: RunConfig) -> Iterator[str]:
    if config.anchor_low > config.anchor_high:
        yield (
            f"anchor_low={config.anchor_low} lies above anchor_high={config.anchor_high}; "
            "the band of win rates is [anchor_low, anchor_high]"
        )
    if config.objective == "blend" and config.regret_weight + config.anchor_weight == 0:
        yield "objective=blend with regret_weight=0 and anchor_weight=0 pays nothing"


def _designer(config: RunConfig) -> Iterator[str]:
    if config.train_hints and not config.train_designer:
        yield "train_hints=true with train_designer=false: the frozen designer writes the hints"
    if config.ablation == "external_designer" and not config.designer_url:
        yield (
            "ablation=external_designer needs someone to ask; add "
            "designer_url=http://HOST:PORT/v1 designer_model=NAME"
        )
    if config.designer_url and config.train_designer:
        yield (
            "designer_url names another model's server, which can't be trained here; "
            "use ablation=external_designer"
        )
    elif config.designer_url and config.ablation != "external_designer":
        yield (
            f"designer_url={config.designer_url} is asked with ablation=external_designer alone, "
            f"not with ablation={config.ablation}; leave one of them out"
        )
    if config.designer_model and not config.designer_url:
        yield (
            f"designer_model={config.designer_model} alone names no designer; use "
            "ablation=external_designer designer_url=http://HOST:PORT/v1"
        )
    if config.designer_url and not config.designer_model:
        yield f"designer_url={config.designer_url} needs designer_model=NAME, the model to ask for"
    if bool(config.judge_url) != bool(config.judge_model):
        given = "judge_url" if config.judge_url else "judge_model"
        yield (f"{given} alone names no judge; give judge_url=http://HOST:PORT/v1 judge_model=NAME")
    if config.lora_rank and not config.lora_targets:
        yield "lora_targets is empty; name layers, or use lora_targets=[all-linear]"
    if config.use_corpus and not config.corpus:
        yield "corpus is empty; name a source such as corpus=[builtin], or use ablation=no_corpus"
