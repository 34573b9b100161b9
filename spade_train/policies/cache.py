"""A key-value cache that grows in place and lets finished rows go.

The stock dynamic cache copies itself at every token. For a small model on the processor that copy
costs as much as the layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer


class _GrowingLayer(DynamicLayer):  # type: ignore[misc]
    """A dynamic layer whose tensors are views of buffers with room to spare."""

    keys: torch.Tensor
    values: torch.Tensor
    _room: torch.Tensor | None = None
    _value_room: torch.Tensor | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        if self._room is None or self._value_room is None or end > self._room.shape[-2]:
            self._room = self._grown(key_states, self.keys, start, end)
            self._value_room = self._grown(value_states, self.values, start, end)
        self._room[:, :, start:end] = key_states
        self._value_room[:, :, start:end] = value_states
        self.keys = self._room[:, :, :end]
        self.values = self._value_room[:, :, :end]
        return self.keys, self.values

    def begin(self, keys: torch.Tensor, values: torch.Tensor, length: int) -> None:
        """Take buffers over whose first `length` positions are filled."""
        self.lazy_initialization(keys, values)
        self._room, self._value_room = keys, values
        self.keys, self.values = keys[:, :, :length], values[:, :, :length]

    def keep(self, rows: torch.Tensor, columns: torch.Tensor) -> None:
        """Keep these rows and positions."""
        self.keys = self.keys[rows].index_select(2, columns)
        self.values = self.values[rows].index_select(2, columns)
        self._room = self._value_room = None

    def join(self, others: Sequence[_GrowingLayer]) -> None:
        """Put the rows of other layers, of the same length, below its own."""
        self.keys = torch.cat([self.keys, *(layer.keys for layer in others)])
        self.values = torch.cat([self.values, *(layer.values for layer in others)])
        self._room = self._value_room = None

    @staticmethod
    def _grown(new: torch.Tensor, old: torch.Tensor, start: int, end: int) -> torch.Tensor:
        room = new.new_empty(*new.shape[:2], end + max(32, end // 4), new.shape[-1])
        if start:
            room[:, :, :start] = old
        return room


class GrowingCache(DynamicCache):  # type: ignore[misc]
    """The cache of one batch; other kinds of layers (sliding windows) stay as they are."""

    def __init__(self, config: Any) -> None:
        super().__init__(config=config)
        stock: list[Any] = list(self.layers)
        self.layers: list[Any] = [_GrowingLayer() if type(x) is DynamicLayer else x for x in stock]

    @classmethod
    def joined(cls, caches: Sequence[GrowingCache]) -> GrowingCache:
        """Return the rows of several caches of the same length as one cache."""
        first = caches[0]
        if len(caches) > 1 and first.get_seq_length():
            if not first.plain:
                raise ValueError("caches with sliding windows can't be joined")
            for place, layer in enumerate(first.layers):
                layer.join([cache.layers[place] for cache in caches[1:]])
        return first

    @property
    def plain(self) -> bool:
        """Whether all layers attend to all positions."""
        return all(isinstance(layer, _GrowingLayer) for layer in self.layers)

    def row_bytes(self, positions: int) -> int:
        """Return what so many positions of one row take."""
        return sum(
            side[0, :, :1].numel() * side.element_size() * positions
            for layer in self.layers
            for side in (layer.keys, layer.values)
        )

    def picked(
        self, rows: torch.Tensor, order: torch.Tensor
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Copy positions of rows out: per layer keys and values of (rows, heads, positions, size).

        Args:
            rows: (picked,), indices into the batch.
            order: (picked, positions), the positions of each picked row, in the order wanted.
        """

        def pick(side: torch.Tensor) -> torch.Tensor:
            own = side[rows]
            index = order[:, None, :, None].expand(-1, own.shape[1], -1, own.shape[3])
            return own.gather(2, index)

        return [(pick(layer.keys), pick(layer.values)) for layer in self.layers]

    def keep_rows(self, rows: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Keep these rows, and drop the positions that are holes in all of them.

        Args:
            rows: (kept,), indices into the batch.
            mask: (kept, positions), the attention mask of the kept rows.

        Returns:
            The mask of the positions that are left.
        """
        columns = torch.nonzero(mask.any(0)).squeeze(1)
        for layer in self.layers:
            if self.plain:
                layer.keep(rows, columns)
            else:
                layer.batch_select_indices(rows)
        return mask.index_select(1, columns) if self.plain else mask
