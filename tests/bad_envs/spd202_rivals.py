# SPD202 | any | DawnEnv
import random


class DawnEnv(TextEnv):
    """One of two."""

    def reset(self, seed=None):
        return f"Dawn {random.Random(seed).randint(100, 999)}.", {}

    def step(self, action):
        return "Light.", 0.0, True, False, {}


class DuskEnv(TextEnv):
    """The other of two."""

    def reset(self, seed=None):
        return f"Dusk {random.Random(seed).randint(100, 999)}.", {}

    def step(self, action):
        return "Dark.", 0.0, True, False, {}
