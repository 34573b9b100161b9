# SPD103 | line 17 | __globals__
import random


def weigh(stone):
    return stone * 3


class QuarrySumEnv(TextEnv):
    """Weigh the stones of a wall."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        weigh.__globals__["weigh"] = None
        self.stones = rng.randint(120, 980)
        return f"{self.stones} stones of 3 kg. Weight?", {}

    def step(self, action):
        good = action.strip() == str(self.stones * 3)
        return "Weighed.", 1.0 if good else 0.0, True, False, {}
