# SPD404 | any | second
import random


class EchoWellEnv(TextEnv):
    """Its answers depend on the hash of what was said."""

    skill = "pattern_recognition"
    max_turns = 5

    def reset(self, seed=None):
        self.turn, self.number = 0, random.Random(seed).randint(100, 999)
        return f"Call into well {self.number}.", {}

    def step(self, action):
        self.turn += 1
        good = action == str(self.number * 7)
        echo = hash(action) % 97
        return f"The well says {echo}.", 1.0 if good else 0.0, good, self.turn >= 5, {}
