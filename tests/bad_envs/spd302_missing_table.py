# SPD302 | line 12 | AttributeError
import random


class LedgerTableEnv(TextEnv):
    """A constructor that reads what nobody has set."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def __init__(self):
        self.total = sum(self.rows)

    def reset(self, seed=None):
        self.rows = [random.Random(seed).randint(100, 999)]
        return f"Rows: {self.rows}.", {}

    def step(self, action):
        return "Read.", 0.0, True, False, {}
