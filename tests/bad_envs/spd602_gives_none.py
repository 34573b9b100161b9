# SPD602 | any | no reference solution
import random


class NoPlanEnv(TextEnv):
    """Its solution gives nothing."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        self.number = random.Random(seed).randint(100, 999)
        return f"{self.number} times twenty-one?", {}

    def step(self, action):
        good = action.strip() == str(21 * self.number)
        return "Seen.", 1.0 if good else 0.0, True, False, {}

    def solution(self):
        return None
