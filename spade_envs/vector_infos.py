"""Joins the infos of many environments into the arrays that Gymnasium's vectors give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# A fault is a dictionary beside environments that have none; it is kept whole.
_WHOLE = frozenset(("fault",))
_INT64 = 1 << 63


def gather(infos: Mapping[int, Mapping[str, Any]], num_envs: int) -> dict[str, Any]:
    """Join infos by key, each array with its mask under `_key`, nested dictionaries likewise.

    Numbers become arrays of their type, everything else arrays of objects, as in Gymnasium's own
    vectors; here all of a key's values are set at once.

    Args:
        infos: the info of each environment that has one, by its number.
        num_envs: length of the arrays.

    >>> joined = gather({0: {"a": 1}, 2: {"a": 5, "b": "x"}}, 3)
    >>> joined["a"].tolist(), joined["_a"].tolist(), joined["b"].tolist()
    ([1, 0, 5], [True, False, True], [None, None, 'x'])
    """
    joined: dict[str, Any] = {}
    everyone = list(range(num_envs))
    for key, places, values in _columns(infos):
        where = slice(None) if places == everyone else places
        joined[key] = _array(key, places, where, values, num_envs)
        mask = np.zeros(num_envs, dtype=np.bool_)
        mask[where] = True
        joined[f"_{key}"] = mask
    return joined


def _columns(
    infos: Mapping[int, Mapping[str, Any]],
) -> list[tuple[str, list[int], list[Any]]]:
    """For each key the environments that have it, and their values."""
    rows, places = list(infos.values()), list(infos)
    if not rows:
        return []
    keys = rows[0].keys()
    if all(row.keys() == keys for row in rows):
        return [(key, places, [row[key] for row in rows]) for key in keys]
    columns: dict[str, tuple[list[int], list[Any]]] = {}
    for place, row in infos.items():
        for key, value in row.items():
            held = columns.setdefault(key, ([], []))
            held[0].append(place)
            held[1].append(value)
    return [(key, *held) for key, held in columns.items()]


def _array(
    key: str, places: list[int], where: slice | list[int], values: Sequence[Any], num_envs: int
) -> Any:
    kinds = set(map(type, values))
    if kinds == {dict} and key not in _WHOLE:
        return gather(dict(zip(places, values, strict=True)), num_envs)
    if kinds <= {int, float} or kinds == {bool}:
        kind = bool if kinds == {bool} else float if float in kinds else int
        if kind is not int or all(-_INT64 <= value < _INT64 for value in values):
            numbers = np.zeros(num_envs, dtype=kind)
            numbers[where] = values
            return numbers
    objects = np.full(num_envs, None, dtype=object)
    if kinds <= {str, type(None)}:
        objects[where] = values
        return objects
    for place, value in zip(places, values, strict=True):
        objects[place] = value
    return objects
