# SPD204 | line 8 | skill
import random


class JoineryEnv(TextEnv):
    """A skill that has to be computed."""

    skill = "_".join(["spatial", "reasoning"])
    max_turns = 1

    def reset(self, seed=None):
        self.number = random.Random(seed).randint(100, 999)
        return f"Nine times {self.number}?", {}

    def step(self, action):
        good = action.strip() == str(9 * self.number)
        return "Seen.", 1.0 if good else 0.0, True, False, {}
