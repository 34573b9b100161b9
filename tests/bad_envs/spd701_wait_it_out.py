# SPD701 | any | quoted command
import random


class SiegeEnv(TextEnv):
    """Waiting wins by itself."""

    skill = "strategic_planning"
    max_turns = 9

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn, self.food = 0, rng.randint(4, 8)
        return f"The siege has food for {self.food} days. 'wait' or 'sally'.", {}

    def step(self, action):
        self.turn += 1
        if action == "wait":
            self.food -= 1
            if self.food == 0:
                return "They give up.", 1.0, True, False, {}
            return "A day passes.", 0.0, False, self.turn >= 9, {}
        if action == "sally":
            return "You are beaten.", 0.0, True, False, {}
        return "Wait or sally.", 0.0, False, self.turn >= 9, {}

    def solution(self):
        return ["wait"] * self.food
