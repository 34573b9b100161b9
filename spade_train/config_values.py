"""Values of a configuration that have the right form and can't be meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from spade_train.config import RunConfig

# Limits that `.inf` switches off.
MAY_BE_INFINITE = ("clip_high", "importance_weight_max", "max_grad_norm")
# Logits are divided by it; below, a softmax of them overflows or has one token left.
LEAST_TEMPERATURE = 0.01
MOST_PLAYS = 1_000_000
MOST_WORKERS = 1024


def truths(values: Mapping[str, Any], fields: Mapping[str, FieldInfo]) -> Iterator[str]:
    """Yield what is wrong with true and false as numbers: pydantic would read them as 1 and 0."""
    for key, value in values.items():
        if isinstance(value, bool) and key in fields:
            forms = set(_parts(fields[key].annotation))
            if forms & {int, float} and bool not in forms:
                yield f"{key}={str(value).lower()} is not possible: write a number"


def _parts(annotation: Any) -> Iterator[Any]:
    parts = get_args(annotation)
    if not parts:
        yield annotation
    for part in parts:
        yield from _parts(part)


def unusable(config: RunConfig) -> Iterator[str]:
    """Yield the numbers that are too large or too small to run with."""
    for key in type(config).model_fields:
        value = getattr(config, key)
        numbers = value if isinstance(value, tuple) else (value,)
        endless = any(isinstance(n, float) and not isfinite(n) for n in numbers)
        if endless and key not in MAY_BE_INFINITE:
            yield f"{key}={value} is not possible: write a finite number"
    for key in ("temperature", "hint_temperature"):
        if 0 < (value := getattr(config, key)) < LEAST_TEMPERATURE:
            yield f"{key}={value} is too small to divide by; use {LEAST_TEMPERATURE} or more"
    plays = config.environments * (config.group_plays + config.hinted_plays)
    if plays > MOST_PLAYS:
        yield (
            f"environments={config.environments} x {config.group_plays} unhinted and "
            f"{config.hinted_plays} hinted plays are {plays:,} episodes a step; "
            f"use {MOST_PLAYS:,} at most"
        )
    if config.workers > MOST_WORKERS:
        yield f"workers={config.workers} are too many processes; use as many as there are cores"
    for key in ("designer_url", "judge_url"):
        url = getattr(config, key)
        if url and not url.startswith(("http://", "https://")):
            yield f"{key}={url} is no URL; write http://HOST:PORT/v1 or https://HOST/v1"
