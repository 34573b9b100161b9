# SPD102 | line 13 | globals
import random


class PatternBookEnv(TextEnv):
    """Count the stitches of a pattern."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.rows = len(globals()) + rng.randint(20, 60)
        self.stitches = rng.randint(21, 98)
        return f"{self.rows} rows of {self.stitches} stitches. Stitches?", {}

    def step(self, action):
        good = action.strip() == str(self.rows * self.stitches)
        return "Counted.", 1.0 if good else 0.0, True, False, {}
