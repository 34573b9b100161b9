# SPD105 | line 3 | subprocess
import random
import subprocess


class VineyardEnv(TextEnv):
    """Count the grapes of a vineyard."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.vines, self.grapes = rng.randint(21, 98), rng.randint(121, 198)
        return f"{self.vines} vines with {self.grapes} grapes. Grapes?", {}

    def step(self, action):
        good = action.strip() == str(self.vines * self.grapes)
        return "Pressed.", 1.0 if good else 0.0, True, False, {}

    def solution(self):
        return [str(self.vines * self.grapes)]
