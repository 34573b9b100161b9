SIDES = ("left", "right", "upper", "lower")


def fold(layers, side):
    """Turn one half of the paper over onto the other.

    `layers` maps the (row, column) of a square in the folded paper to the names that lie there.
    """
    upright = side in ("upper", "lower")
    size = 1 + max(row if upright else column for row, column in layers)
    folded = {}
    for (row, column), names in layers.items():
        place = row if upright else column
        if (place < size // 2) == (side in ("right", "lower")):  # this half stays where it is
            moved = place % (size // 2)
            twin = size - 1 - place
            if upright:
                folded[moved, column] = names + layers[twin, column]
            else:
                folded[row, moved] = names + layers[row, twin]
    return folded


class PaperPunchEnv(TextEnv):
    """Fold a sheet of squares, punch it, and say where the holes are once it is flat again."""

    skill = "spatial_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        layers = {(r, c): [f"{'ABCD'[r]}{c + 1}"] for r in range(4) for c in range(8)}
        folds = [rng.choice(SIDES[:2]), rng.choice(SIDES[2:]), rng.choice(SIDES[:2])]
        folds = rng.sample(folds, rng.choice([2, 3]))
        for side in folds:
            layers = fold(layers, side)
        row, column = rng.choice(sorted(layers))
        self._holes = set(layers[row, column])
        story = ", then ".join(f"the {side} half over onto the other half" for side in folds)
        return (
            "A sheet has 4 rows of squares, A (top) to D, and 8 columns, 1 (left) to 8.\n"
            f"Fold {story}.\nIn what is left, punch a hole through all layers in row {row + 1} "
            f"from the top, column {column + 1} from the left. Then unfold the sheet.\n"
            "Which squares have holes? Name them all, like 'A1 D6'.",
            {},
        )

    def step(self, action):
        named = set(action.upper().replace(",", " ").split())
        if named == self._holes:
            return "Every hole is where you said.", 1.0, True, False, {}
        right, wrong = len(named & self._holes), len(named - self._holes)
        credit = max(0.0, 0.5 * (right - wrong) / len(self._holes))
        return "The holes are not all where you said.", round(credit, 3), True, False, {}

    def solution(self):
        return [" ".join(sorted(self._holes))]
