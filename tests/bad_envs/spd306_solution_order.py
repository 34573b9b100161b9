# SPD306 | any | solution
import random


class FloristEnv(TextEnv):
    """A solution that lists a set in whatever order it comes."""

    skill = "optimization"
    max_turns = 8

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.wanted = set(rng.sample(["iris", "lily", "rose", "aster", "dahlia", "tulip"], 4))
        self.turn, self.got = 0, set()
        return f"Put in: {', '.join(sorted(self.wanted))}, one at a time.", {}

    def step(self, action):
        self.turn += 1
        if action in self.wanted:
            self.got.add(action)
        done = self.got == self.wanted
        return f"{len(self.got)} of 4.", 1.0 if done else 0.0, done, self.turn >= 8, {}

    def solution(self):
        return list(self.wanted)
