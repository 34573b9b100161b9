"""Joins the infos of many environments into the arrays that Gymnasium's vectors give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

# A fault is a dictionary beside environments that have none; it is kept whole.
_WHOLE = frozenset(("fault",))


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
    columns: dict[str, dict[int, Any]] = {}
    for place, info in infos.items():
        for key, value in info.items():
            columns.setdefault(key, {})[place] = value
    joined: dict[str, Any] = {}
    for key, column in columns.items():
        joined[key] = _array(key, column, num_envs)
        mask = np.zeros(num_envs, dtype=np.bool_)
        mask[list(column)] = True
        joined[f"_{key}"] = mask
    return joined


def _array(key: str, column: dict[int, Any], num_envs: int) -> Any:
    values = list(column.values())
    kinds = {type(value) for value in values}
    if kinds == {dict} and key not in _WHOLE:
        return gather(column, num_envs)
    number = kinds <= {int, float} or kinds == {bool}
    if number and not any(type(value) is int and abs(value) >= 1 << 63 for value in values):
        kind = bool if kinds == {bool} else float if float in kinds else int
        array = np.zeros(num_envs, dtype=kind)
        array[list(column)] = values
        return array
    objects = np.full(num_envs, None, dtype=object)
    for place, value in column.items():
        objects[place] = value
    return objects
