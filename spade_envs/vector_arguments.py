"""What a vector is given: taken as what it must be, or refused before anything is changed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from spade_envs.arguments import chosen_hint
from spade_envs.references import REFERENCE_KEYS
from spade_runtime.errors import UsageError
from spade_runtime.seeds import checked_seed
from spade_runtime.words import an

OPTIONS = ("hint", "max_turns", "reset_mask")


def mode(value: AutoresetMode | str) -> AutoresetMode:
    """The autoreset mode."""
    try:
        return AutoresetMode(value)
    except ValueError:
        known = ", ".join(repr(one.value) for one in AutoresetMode)
        raise UsageError(f"autoreset_mode is one of {known}, not {value!r}") from None


def render_mode(value: Any) -> str | None:
    """None or `ansi`."""
    if value not in (None, "ansi"):
        raise UsageError(f"render_mode is None or 'ansi', not {value!r:.80}")
    return None if value is None else "ansi"


def references(
    num_envs: int,
    reference: dict[str, Any],
    members: Sequence[str | Mapping[str, Any]] | None,
    level: str,
) -> list[dict[str, Any]]:
    """One reference for each environment."""
    if type(num_envs) is not int or num_envs < 1:
        raise UsageError(f"num_envs is a whole number of at least 1, not {num_envs!r:.60}")
    if members is None:
        if not reference:
            raise UsageError("name a source, a path, a pool's hash, or members")
        return [reference] * num_envs
    if reference or isinstance(members, str) or len(members) != num_envs:
        raise UsageError(
            f"members is a list of {num_envs} ids or references and takes the place of source, "
            f"path and pool; {'one text' if isinstance(members, str) else len(members)} came"
        )
    return [_member(member, level) for member in members]


def _member(member: str | Mapping[str, Any], level: str) -> dict[str, Any]:
    import gymnasium

    if isinstance(member, Mapping):
        kwargs = dict(member)
    elif isinstance(member, str):
        module, colon, id_ = member.rpartition(":")
        if colon:
            # `gymnasium.make` takes such names too, and imports the module.
            importlib.import_module(module)
        kwargs = gymnasium.spec(id_).kwargs
        if kwargs.get("level", level) != level:
            raise UsageError(
                f"{member} is registered with level={kwargs['level']!r} and this vector has "
                f"{level!r}; give the vector that level"
            )
    else:
        raise UsageError(f"a member is an id or a reference, not {member!r:.80}")
    return {key: value for key, value in kwargs.items() if key in REFERENCE_KEYS}


def actions(values: Any, count: int) -> Sequence[Any]:
    """One message for each environment, in their order."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        came = "one text" if isinstance(values, str) else an(type(values).__name__)
        raise UsageError(f"{count} actions are needed, in a list or a tuple; {came} came")
    if len(values) != count:
        raise UsageError(f"{count} actions are needed, {len(values)} came")
    return list(values)


def seeds(seed: Any, count: int) -> list[int | None]:
    """A seed, or None, for each environment."""
    if seed is None:
        return [None] * count
    if not isinstance(seed, Sequence | np.ndarray) or isinstance(seed, str):
        first = checked_seed(seed)
        return [checked_seed(first + place) for place in range(count)]
    if len(seed) != count:
        raise UsageError(f"{count} seeds are needed, {len(seed)} came")
    return [None if one is None else checked_seed(one) for one in seed]


def chosen(mask: Any, count: int, *, begun: bool) -> list[int]:
    """Which environments a reset is of."""
    if mask is None:
        return list(range(count))
    mask = np.asarray(mask)
    if mask.shape != (count,) or mask.dtype != np.bool_ or not mask.any():
        raise UsageError(
            f"options['reset_mask'] is a boolean array of shape ({count},) with at "
            f"least one True, not {mask!r:.100}"
        )
    if not begun and not mask.all():
        raise UsageError("the first reset is of all environments")
    return [int(place) for place in np.flatnonzero(mask)]


def hints(wanted: Any, references: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """A hint, or None, for each environment; True asks for the one that comes with it."""
    found = list(wanted) if isinstance(wanted, list | tuple) else [wanted] * len(references)
    if len(found) != len(references):
        raise UsageError(f"{len(references)} hints are needed, {len(found)} came")
    return [chosen_hint(one, reference) for one, reference in zip(found, references, strict=True)]
