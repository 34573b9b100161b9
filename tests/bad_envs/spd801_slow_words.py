# SPD801 | any | processor time
import random


class AnagramEnv(TextEnv):
    """Goes through all orders of the letters that are said."""

    skill = "language_understanding"
    max_turns = 3

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn, self.word = 0, rng.choice(["stone", "bread", "river", "cloud"])
        return f"Letters: {' '.join(sorted(self.word))}. Which word ends in {self.word[-1]}?", {}

    def step(self, action):
        self.turn += 1
        orders = sum(1 for _ in itertools.permutations(action))
        good = action.strip() == self.word
        return f"One of {orders} orders.", 1.0 if good else 0.0, good, self.turn >= 3, {}

    def solution(self):
        return [self.word]
