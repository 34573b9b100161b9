# SPD104 | line 2 | import
from random import *


class SeedTrayEnv(TextEnv):
    """Count the seedlings of a tray."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        rng = Random(seed)
        self.rows, self.columns = rng.randint(21, 98), rng.randint(21, 98)
        return f"{self.rows} rows of {self.columns}. Seedlings?", {}

    def step(self, action):
        good = action.strip() == str(self.rows * self.columns)
        return "Counted.", 1.0 if good else 0.0, True, False, {}
