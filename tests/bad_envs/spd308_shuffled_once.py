# SPD308 | any | built under another seed
import random


class DrawerEnv(TextEnv):
    """The drawers are shuffled in the constructor, the question is drawn in reset."""

    skill = "memory_recall"
    max_turns = 3

    def __init__(self):
        self.drawers = list(range(100, 130))
        random.shuffle(self.drawers)

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn, self.place = 0, rng.randint(1, 30)
        return f"'open' shows drawer {self.place}; then 'say N'.", {}

    def step(self, action):
        self.turn += 1
        inside = self.drawers[self.place - 1]
        if action == "open":
            return f"Inside: {inside}.", 0.0, False, self.turn >= 3, {}
        good = action == f"say {inside}" and self.turn > 1
        return "Heard.", 1.0 if good else 0.0, True, False, {}

    def solution(self):
        return ["open", f"say {self.drawers[self.place - 1]}"]
