# SPD204 | line 9 | version
import random


class RevisionEnv(TextEnv):
    """A file whose version is below zero."""

    skill = "mathematical_reasoning"
    version = -3
    max_turns = 1

    def reset(self, seed=None):
        self.number = random.Random(seed).randint(100, 999)
        return f"Seven times {self.number}?", {}

    def step(self, action):
        good = action.strip() == str(7 * self.number)
        return "Seen.", 1.0 if good else 0.0, True, False, {}
