# SPD205 | any | docstring
import random


class MuteTitleEnv(TextEnv):
    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        self.number = random.Random(seed).randint(100, 999)
        return f"Eleven times {self.number}?", {}

    def step(self, action):
        good = action.strip() == str(11 * self.number)
        return "Seen.", 1.0 if good else 0.0, True, False, {}

    def solution(self):
        return [str(11 * self.number)]
