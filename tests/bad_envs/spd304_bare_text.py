# SPD304 | any | str
import random


class BareTextEnv(TextEnv):
    """Hands out the observation alone."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        self.number = random.Random(seed).randint(100, 999)
        return f"{self.number} times six?"

    def step(self, action):
        good = action.strip() == str(6 * self.number)
        return "Seen.", 1.0 if good else 0.0, True, False, {}
