# SPD601 | any | truncated
import random


class StairsEnv(TextEnv):
    """The way is longer than the turns allow, on most seeds."""

    skill = "spatial_reasoning"
    max_turns = 6

    def reset(self, seed=None):
        self.turn, self.steps = 0, random.Random(seed).randint(5, 14)
        return f"A stair of {self.steps} steps. 'up' climbs one.", {}

    def step(self, action):
        self.turn += 1
        self.steps -= action == "up"
        done = self.steps == 0
        return f"{self.steps} left.", 1.0 if done else 0.0, done, self.turn >= 6, {}

    def solution(self):
        return ["up"] * self.steps
