# SPD103 | line 11 | __getattr__
import random


class PuppetEnv(TextEnv):
    """Count the strings of the puppets."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def __getattr__(self, name):
        return 0

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.puppets, self.strings = rng.randint(21, 98), rng.randint(21, 98)
        return f"{self.puppets} puppets with {self.strings} strings. Strings?", {}

    def step(self, action):
        good = action.strip() == str(self.puppets * self.strings)
        return "Counted.", 1.0 if good else 0.0, True, False, {}
