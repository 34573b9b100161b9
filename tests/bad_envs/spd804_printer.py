# SPD804 | any | printed
import random


class TeleprinterEnv(TextEnv):
    """Prints what nobody reads."""

    skill = "mathematical_reasoning"
    max_turns = 2

    def reset(self, seed=None):
        self.number = random.Random(seed).randint(100, 999)
        return f"{self.number} times twenty-three?", {}

    def step(self, action):
        print("tick tock " * 20_000)
        good = action.strip() == str(23 * self.number)
        return "Seen.", 1.0 if good else 0.0, True, False, {}
