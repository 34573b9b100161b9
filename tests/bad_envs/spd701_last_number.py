# SPD701 | any | last number
import random


class GrowingListEnv(TextEnv):
    """The largest of a list that only grows."""

    skill = "pattern_recognition"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.list = sorted(rng.sample(range(100, 999), rng.randint(4, 9)))
        tail = "please " * rng.randint(0, 5)
        return f"Numbers: {', '.join(map(str, self.list))}. The largest of all {tail}?", {}

    def step(self, action):
        good = action.strip() == str(max(self.list))
        return "Seen.", 1.0 if good else 0.0, True, False, {}

    def solution(self):
        return [str(max(self.list))]
