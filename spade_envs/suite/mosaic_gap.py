ROWS, COLUMNS, GAPS = 6, 8, 5


class MosaicGapEnv(TextEnv):
    """Fill the gaps of an old mosaic whose tiles follow one rule."""

    skill = "pattern_recognition"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        motif = rng.sample("BGKORWY", rng.randint(4, 6))
        along = rng.choice([1, 2, -1])  # steps through the motif from one tile to the next
        down = rng.randint(1, len(motif) - 1)
        cells = [
            [motif[(down * row + along * column) % len(motif)] for column in range(COLUMNS)]
            for row in range(ROWS)
        ]
        gaps = sorted(rng.sample(range(ROWS * COLUMNS), GAPS))
        self._missing = "".join(cells[gap // COLUMNS][gap % COLUMNS] for gap in gaps)
        for gap in gaps:
            cells[gap // COLUMNS][gap % COLUMNS] = "?"
        drawing = "\n".join(" ".join(row) for row in cells)
        return (
            f"Every row of this mosaic repeats one motif, shifted by the same amount from row to "
            f"row.\n{drawing}\nReply with the {GAPS} missing letters in reading order.",
            {},
        )

    def step(self, action):
        letters = "".join(re.findall("[A-Z]", action.upper()))
        if letters == self._missing:
            return "The mosaic is whole again.", 1.0, True, False, {}
        return "The tiles do not match.", 0.0, True, False, {}

    def solution(self):
        return [" ".join(self._missing)]
