# SPD306 | any | first observation
import random


class Token:
    pass


class TokenBoxEnv(TextEnv):
    """Shows an object's address."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        self.number = random.Random(seed).randint(100, 999)
        return f"Box of {Token()}: {self.number} tokens, times four?", {}

    def step(self, action):
        good = action.strip() == str(4 * self.number)
        return "Seen.", 1.0 if good else 0.0, True, False, {}
