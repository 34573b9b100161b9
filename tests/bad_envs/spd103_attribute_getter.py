# SPD103 | any | __class__
import operator
import random


class BellRopeEnv(TextEnv):
    """Count the strokes of a bell."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        kind = operator.attrgetter("__class__.__mro__")(self)
        self.hours, self.days = rng.randint(21, 98), rng.randint(21, 98)
        return f"{self.hours} strokes a day for {self.days} days. Strokes?", {"n": len(kind)}

    def step(self, action):
        good = action.strip() == str(self.hours * self.days)
        return "Rung.", 1.0 if good else 0.0, True, False, {}
