# SPD601 | any | list
import random


class OneStringEnv(TextEnv):
    """Its solution is a text where a list belongs."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        self.number = random.Random(seed).randint(100, 999)
        return f"{self.number} times nineteen?", {}

    def step(self, action):
        good = action.strip() == str(19 * self.number)
        return "Seen.", 1.0 if good else 0.0, True, False, {}

    def solution(self):
        return str(19 * self.number)
