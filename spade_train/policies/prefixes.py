"""What a model has read of conversations, kept from one turn to the next.

A conversation grows by appending, so the keys and values of what was read stay true while the
weights do. They are kept in blocks, one for the rows that left a batch together, with each row's
positions pushed together from the left.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from spade_train.policies.cache import GrowingCache

# A block beyond this is not kept, and older blocks make room: for a small model on a processor it
# is plenty, for a large one it bounds what the memory pays for.
ROOM_BYTES = 1 << 31


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Keys and values of some rows: per layer a pair of (rows, heads, positions, size)."""

    layers: list[tuple[torch.Tensor, torch.Tensor]]
    size: int


@dataclass(frozen=True, slots=True)
class Held:
    """The beginning of one conversation.

    Attributes:
        ids: what was read, in order.
        block: where its keys and values are.
        row: its row there.
    """

    ids: list[int]
    block: _Block
    row: int


class Prefixes:
    """The beginnings of conversations, by name.

    Args:
        room: bytes at most; the oldest blocks leave first.
    """

    def __init__(self, room: int = ROOM_BYTES) -> None:
        self.room = room
        self._held: dict[Hashable, Held] = {}
        self._blocks: list[_Block] = []

    def find(self, name: Hashable, prompt: Sequence[int]) -> Held | None:
        """Return what a prompt goes on from; its last token is always left to read."""
        held = self._held.get(name)
        if held is None or len(held.ids) >= len(prompt):
            return None
        return held if held.ids == list(prompt[: len(held.ids)]) else None

    def keep(
        self,
        cache: GrowingCache,
        mask: torch.Tensor,
        rows: Sequence[int],
        names: Sequence[Hashable],
        read: Sequence[list[int]],
    ) -> None:
        """Keep rows of a batch's cache.

        Args:
            cache: of the batch.
            mask: (rows of the batch, positions), which positions are real; a row that ended early
                may have more of them than it read.
            rows: of the batch.
            names: of their conversations.
            read: the ids that each of them has read.
        """
        if not rows:
            return
        place = torch.tensor(list(rows), device=mask.device)
        width = max(map(len, read))
        size = cache.row_bytes(width) * len(rows)
        if size > self.room:
            return
        # Real positions first, in order; what follows is cut off or read over.
        order = torch.argsort(~mask[place], dim=1, stable=True)[:, :width]
        block = _Block(cache.picked(place, order), size)
        self._make_room(size)
        self._blocks.append(block)
        for row, (name, ids) in enumerate(zip(names, read, strict=True)):
            self._held[name] = Held(ids, block, row)

    def _make_room(self, size: int) -> None:
        in_use = {id(held.block) for held in self._held.values()}
        self._blocks = [block for block in self._blocks if id(block) in in_use]
        while self._blocks and sum(block.size for block in self._blocks) + size > self.room:
            oldest = self._blocks.pop(0)
            self._held = {n: held for n, held in self._held.items() if held.block is not oldest}

    def cache_of(self, config: Any, held: Sequence[Held], spare: int) -> GrowingCache:
        """Return a cache of these beginnings, one a row, as wide as the longest.

        Args:
            config: of the model.
            held: one a row.
            spare: positions that will be added.
        """
        width = max(len(one.ids) for one in held)
        blocks: dict[int, tuple[_Block, list[int], list[int]]] = {}
        for place, one in enumerate(held):
            _, places, rows = blocks.setdefault(id(one.block), (one.block, [], []))
            places.append(place)
            rows.append(one.row)
        cache = GrowingCache(config)
        for number, layer in enumerate(cache.layers):
            pair = held[0].block.layers[number]
            rooms = []
            for side in range(2):
                like = pair[side]
                room = like.new_zeros(
                    len(held), like.shape[1], width + max(32, spare), like.shape[3]
                )
                for block, places, rows in blocks.values():
                    own = block.layers[number][side]
                    reach = min(width, own.shape[2])
                    room[places, :, :reach] = own[rows, :, :reach]
                rooms.append(room)
            layer.begin(rooms[0], rooms[1], width)
        return cache

    def forget(self) -> None:
        """Let go of everything: the weights may change now."""
        self._held.clear()
        self._blocks.clear()
