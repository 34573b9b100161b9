# SPD407 | any | JSON
import random


class RatioEnv(TextEnv):
    """Its information holds what JSON has no word for."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        self.number = random.Random(seed).randint(100, 999)
        return f"{self.number} times eighteen?", {}

    def step(self, action):
        good = action.strip() == str(18 * self.number)
        return "Seen.", 1.0 if good else 0.0, True, False, {"ratio": float("nan")}
