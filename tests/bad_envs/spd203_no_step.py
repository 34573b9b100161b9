# SPD203 | any | step
import random


class StatueEnv(TextEnv):
    """A game in which nothing can be done."""

    skill = "spatial_reasoning"

    def reset(self, seed=None):
        return f"Statue {random.Random(seed).randint(100, 999)}.", {}
