# SPD305 | any | characters
import random


class ChronicleEnv(TextEnv):
    """Tells far too much in one breath."""

    skill = "memory_recall"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.years = [rng.randint(1000, 1999) for _ in range(4000)]
        return "Years: " + " ".join(map(str, self.years)) + ". Which came first?", {}

    def step(self, action):
        good = action.strip() == str(self.years[0])
        return "Written.", 1.0 if good else 0.0, True, False, {}
