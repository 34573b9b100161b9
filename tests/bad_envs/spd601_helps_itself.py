# SPD601 | any | reward 0.0
import random


class RiggedScaleEnv(TextEnv):
    """Its solution changes the task so that it fits."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        self.answer = random.Random(seed).randint(100, 999)
        return "What do I weigh?", {"hint": self.answer % 10}

    def step(self, action):
        good = action.strip() == str(self.answer)
        return "Weighed.", 1.0 if good else 0.0, True, False, {}

    def solution(self):
        self.answer = 500
        return ["500"]
