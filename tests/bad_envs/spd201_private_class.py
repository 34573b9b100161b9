# SPD201 | any | class
import random


class _HiddenEnv(TextEnv):
    """A class whose name begins with an underscore is a helper."""

    def reset(self, seed=None):
        return f"Task {random.Random(seed).randint(100, 999)}.", {}

    def step(self, action):
        return "Done.", 0.0, True, False, {}
