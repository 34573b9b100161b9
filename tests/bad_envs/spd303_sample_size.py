# SPD303 | line 13 | ValueError
import random


class CrewListEnv(TextEnv):
    """A sample larger than what it is drawn from, on some seeds."""

    skill = "memory_recall"
    max_turns = 2

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.crew = rng.sample(["Ada", "Ben", "Cleo", "Dov", "Eva"], rng.randint(3, 6))
        return f"Crew: {', '.join(self.crew)}. Backwards?", {}

    def step(self, action):
        good = action == ", ".join(self.crew[::-1])
        return "Heard.", 1.0 if good else 0.0, True, False, {}
