# SPD003 | line 13 | unexpected indent
import random


class CisternEnv(TextEnv):
    """Work out how long a cistern takes to fill."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
            self.litres, self.rate = rng.randint(200, 900), rng.randint(3, 19)
        return f"{self.litres} litres at {self.rate} a minute. Whole minutes?", {}

    def step(self, action):
        return "Noted.", 0.0, True, False, {}
