# SPD402 | any | terminated
import random


class LatchEnv(TextEnv):
    """Ends with a number where a truth value belongs."""

    skill = "mathematical_reasoning"
    max_turns = 2

    def reset(self, seed=None):
        self.number = random.Random(seed).randint(100, 999)
        return f"{self.number} times twelve?", {}

    def step(self, action):
        good = action.strip() == str(12 * self.number)
        return "Seen.", 1.0 if good else 0.0, 1, False, {}
