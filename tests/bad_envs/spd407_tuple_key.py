# SPD407 | any | JSON
import random


class ChartEnv(TextEnv):
    """Its information is keyed by pairs."""

    skill = "spatial_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.x, self.y = rng.randint(21, 98), rng.randint(21, 98)
        return f"A field of {self.x} by {self.y}. Area?", {(self.x, self.y): "field"}

    def step(self, action):
        good = action.strip() == str(self.x * self.y)
        return "Drawn.", 1.0 if good else 0.0, True, False, {}
