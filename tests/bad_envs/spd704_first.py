# SPD704 | neighbour | the first of a pair
import random


class RopeWalkEnv(TextEnv):
    """Work out the hemp for a number of ropes."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.ropes, self.strands = rng.randint(21, 98), rng.randint(3, 19)
        self.length = rng.randint(21, 98)
        return f"{self.ropes} ropes of {self.strands} strands, {self.length} m each. Metres?", {}

    def step(self, action):
        good = action.strip() == str(self.ropes * self.strands * self.length)
        return ("Spun." if good else "Frayed."), 1.0 if good else 0.0, True, False, {}

    def solution(self):
        return [str(self.ropes * self.strands * self.length)]
