# SPD802 | any | MemoryError
import random


class FloodLogEnv(TextEnv):
    """Keeps far more than it needs."""

    skill = "memory_recall"
    max_turns = 3

    def reset(self, seed=None):
        self.turn, self.number = 0, random.Random(seed).randint(100, 999)
        return f"{self.number} times twenty-two?", {}

    def step(self, action):
        self.turn += 1
        self.log = bytearray(900_000_000)
        good = action.strip() == str(22 * self.number)
        return "Seen.", 1.0 if good else 0.0, good, self.turn >= 3, {}
