ROWS, COLUMNS, SIZE = 4, 5, 4
CELLS = [(row, column) for row in range(ROWS) for column in range(COLUMNS)]


def cut(rng):
    """Cut the patio into five connected tiles of four squares, or return None."""
    left, tiles = set(CELLS), []
    while left:
        tile = {min(left)}
        while len(tile) < SIZE:
            edge = {(r + a, c + b) for r, c in tile for a, b in [(0, 1), (1, 0), (0, -1), (-1, 0)]}
            choices = sorted(edge & left - tile)
            if not choices:
                return None
            tile.add(rng.choice(choices))
        tiles.append(tile)
        left -= tile
    return tiles


class PatioTilesEnv(TextEnv):
    """Lay five stone tiles so that they cover a patio without gaps."""

    skill = "spatial_reasoning"
    max_turns = 14

    def reset(self, seed=None):
        rng = random.Random(seed)
        tiles = None
        while tiles is None:
            tiles = cut(rng)
        rng.shuffle(tiles)
        self._homes, self.shapes = {}, {}
        for name, tile in zip("VWXYZ", tiles, strict=True):
            top, side = min(r for r, _ in tile), min(c for _, c in tile)
            self._homes[name] = top, side
            self.shapes[name] = sorted((r - top, c - side) for r, c in tile)
        self.laid = {}
        self.most = 0
        self.turn = 0
        drawings = "\n".join(f"{name}:\n{self._draw(name)}" for name in self.shapes)
        return (
            f"Cover a patio of {ROWS} rows and {COLUMNS} columns with these tiles; they can't be "
            f"turned.\n{drawings}\n'lay V 1 3' puts the upper left corner of V's drawing at row "
            "1, column 3; 'lift V' takes a tile back.",
            {},
        )

    def _draw(self, name):
        shape = self.shapes[name]
        width = 1 + max(c for _, c in shape)
        rows = range(1 + max(r for r, _ in shape))
        return "\n".join(
            "".join("#" if (r, c) in shape else "." for c in range(width)) for r in rows
        )

    def _view(self):
        return "\n".join(
            "".join(self.laid.get((r, c), ".") for c in range(COLUMNS)) for r in range(ROWS)
        )

    def step(self, action):
        self.turn += 1
        out_of_time = self.turn >= self.max_turns
        words = action.upper().split()
        reward = 0.0
        if words[:1] == ["LIFT"]:
            self.laid = {cell: name for cell, name in self.laid.items() if [name] != words[1:]}
        elif re.fullmatch(f"LAY [V-Z] [1-{ROWS}] [1-{COLUMNS}]", " ".join(words)):
            name, top, side = words[1], int(words[2]) - 1, int(words[3]) - 1
            cells = {(r + top, c + side) for r, c in self.shapes[name]}
            if name in self.laid.values() or not cells <= set(CELLS) - set(self.laid):
                return f"{name} does not fit.\n{self._view()}", 0.0, False, out_of_time, {}
            self.laid |= dict.fromkeys(cells, name)
            if len(self.laid) == len(CELLS):
                return f"The patio is covered!\n{self._view()}", 1.0, True, False, {}
            if len(self.laid) > self.most:  # paid once for each number of tiles
                self.most, reward = len(self.laid), 0.1
        return self._view(), reward, False, out_of_time, {}

    def solution(self):
        return [f"lay {name} {r + 1} {c + 1}" for name, (r, c) in self._homes.items()]
