# SPD402 | any | reward
import random


class TipJarEnv(TextEnv):
    """Pays in words."""

    skill = "mathematical_reasoning"
    max_turns = 2

    def reset(self, seed=None):
        self.number = random.Random(seed).randint(100, 999)
        return f"{self.number} times fourteen?", {}

    def step(self, action):
        good = action.strip() == str(14 * self.number)
        return "Seen.", 1.0 if good else "none", True, False, {}

    def solution(self):
        return [str(14 * self.number)]
