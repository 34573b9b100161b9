# SPD304 | any | dict
import random


class TallyStickEnv(TextEnv):
    """Hands out a list where the information belongs."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        self.notches = random.Random(seed).randint(100, 999)
        return f"{self.notches} notches, times six?", [self.notches]

    def step(self, action):
        good = action.strip() == str(6 * self.notches)
        return "Cut.", 1.0 if good else 0.0, True, False, {}
