"""Joins the infos of many environments into the arrays that Gymnasium's vectors give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spade_runtime.sandbox.book import Moves

Flags = npt.NDArray[np.bool_]
Places = slice | list[int] | npt.NDArray[np.intp]

# A fault is a dictionary beside environments that have none; it is kept whole.
_WHOLE = frozenset(("fault",))
_PLAIN = frozenset((str, type(None)))


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
    return _join(list(infos), list(infos.values()), num_envs)


class Notes:
    """The runtime's own part of the infos of games, filled column by column as rounds come in.

    Only for steps in which every environment either moved or was reset and none is at fault: then
    it is known beforehand which keys there are, and no dictionary of one environment is built.

    Args:
        num_envs: length of the arrays.
    """

    def __init__(self, num_envs: int) -> None:
        self._nobody = np.zeros(num_envs, dtype=np.bool_)
        self._everybody = np.ones(num_envs, dtype=np.bool_)
        self._zeros = np.zeros(num_envs, dtype=np.int_)
        self._unpaid = np.zeros(num_envs)
        self._nothing = np.full(num_envs, None, dtype=object)

    def flags(self) -> Flags:
        """A fresh array of falsehoods; copying one is the quickest way to make it."""
        return self._nobody.copy()

    def zeros(self) -> npt.NDArray[np.float64]:
        """A fresh array of rewards that are all 0."""
        return self._unpaid.copy()

    def joined(
        self, moved: Sequence[tuple[Places, Moves]], rows: Mapping[int, Mapping[str, Any]]
    ) -> dict[str, Any]:
        """What `gather` gives of the infos of a whole step.

        Args:
            moved: rounds, each with the places of its rows.
            rows: the infos of environments that were reset, by place.
        """
        everyone = self._everybody
        turn, solved = self._zeros.copy(), self.flags()
        action, acted = self._nothing.copy(), self.flags() if rows else everyone.copy()
        told: dict[int, Mapping[str, Any]] = {}
        for places, moves in moved:
            turn[places] = moves.turns
            action[places] = moves.actions
            if rows:
                acted[places] = True
            if moves.ended:
                solved[places] = moves.solved
            if moves.infos is not None:
                numbers = range(*places.indices(len(turn))) if type(places) is slice else places
                told |= zip(numbers, moves.infos, strict=True)
        for place, row in rows.items():
            if len(row) > 1:
                told[place] = {key: value for key, value in row.items() if key != "spade"}
        infos = gather(dict(sorted(told.items())), len(turn)) if told else {}
        infos["spade"] = {
            "turn": turn,
            "_turn": everyone.copy(),
            "solved": solved,
            "_solved": everyone.copy(),
            "fault": self._nothing.copy(),
            "_fault": everyone.copy(),
        }
        if moved:
            infos["spade"] |= {"action": action, "_action": acted}
        infos["_spade"] = everyone.copy()
        return infos


def _join(places: list[int], rows: Sequence[Mapping[str, Any]], num_envs: int) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for key, where, values in _columns(places, rows):
        everyone = len(where) == num_envs
        joined[key] = _array(key, where, values, num_envs)
        mask = (np.ones if everyone else np.zeros)(num_envs, dtype=np.bool_)
        if not everyone:
            mask[where] = True
        joined[f"_{key}"] = mask
    return joined


def _columns(
    places: list[int], rows: Sequence[Mapping[str, Any]]
) -> list[tuple[str, list[int], list[Any]]]:
    """For each key the environments that have it, and their values."""
    if not rows:
        return []
    if len(set(map(len, rows))) == 1:
        try:
            return [(key, places, [row[key] for row in rows]) for key in rows[0]]
        except KeyError:
            pass  # as many keys, but others
    columns: dict[str, tuple[list[int], list[Any]]] = {}
    for place, row in zip(places, rows, strict=True):
        for key, value in row.items():
            held = columns.setdefault(key, ([], []))
            held[0].append(place)
            held[1].append(value)
    return [(key, *held) for key, held in columns.items()]


def _array(key: str, places: list[int], values: list[Any], num_envs: int) -> Any:
    kinds = set(map(type, values))
    if kinds == {dict} and key not in _WHOLE:
        return _join(places, values, num_envs)
    if kinds <= {int, float} or kinds == {bool}:
        kind = bool if kinds == {bool} else float if float in kinds else int
        try:
            numbers = np.array(values, dtype=kind)
        except OverflowError:
            pass  # more than 64 bits: kept as Python's integers
        else:
            return numbers if _in_order(places, num_envs) else _spread(numbers, places, num_envs)
    objects = np.full(num_envs, None, dtype=object)
    if kinds <= _PLAIN:
        objects[slice(None) if _in_order(places, num_envs) else places] = values
    else:
        for place, value in zip(places, values, strict=True):
            objects[place] = value
    return objects


def _in_order(places: list[int], num_envs: int) -> bool:
    return places == list(range(num_envs))


def _spread(numbers: Any, places: list[int], num_envs: int) -> Any:
    array = np.zeros(num_envs, dtype=numbers.dtype)
    array[places] = numbers
    return array
