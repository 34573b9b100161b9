# SPD601 | line 21 | StopIteration
import random


class LostPlanEnv(TextEnv):
    """Its solution looks for what is not there."""

    skill = "optimization"
    max_turns = 2

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.sizes = [rng.randint(10, 99) for _ in range(5)]
        return f"Sizes: {self.sizes}. Twice the largest?", {}

    def step(self, action):
        good = action.strip() == str(2 * max(self.sizes))
        return "Seen.", 1.0 if good else 0.0, True, False, {}

    def solution(self):
        return [str(2 * next(size for size in self.sizes if size > 99))]
