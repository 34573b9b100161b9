# SPD305 | any | empty
import random


class WhispererEnv(TextEnv):
    """Says nothing to what it does not know."""

    skill = "language_understanding"
    max_turns = 4

    def reset(self, seed=None):
        self.turn, self.number = 0, random.Random(seed).randint(100, 999)
        return "'listen' or 'say N'.", {}

    def step(self, action):
        self.turn += 1
        if action == "listen":
            return f"It whispers {self.number}.", 0.0, False, self.turn >= 4, {}
        good = action == f"say {self.number}"
        return ("Yes." if good else ""), 1.0 if good else 0.0, good, self.turn >= 4, {}
