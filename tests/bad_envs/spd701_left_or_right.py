# SPD701 | any | constant
import random


class ForkInTheRoadEnv(TextEnv):
    """Two ways, and only one is right."""

    skill = "spatial_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turns = [rng.choice("LR") for _ in range(9)]
        return f"You turned {''.join(self.turns)}. Does the last L come left or right of the last R?", {}

    def step(self, action):
        text = "".join(self.turns)
        truth = "left" if text.rfind("L") < text.rfind("R") else "right"
        good = action.strip().lower() == truth
        return "Seen.", 1.0 if good else 0.0, True, False, {}

    def solution(self):
        text = "".join(self.turns)
        return ["left" if text.rfind("L") < text.rfind("R") else "right"]
