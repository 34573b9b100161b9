# SPD704 | any | spd704_first
import random


class BookBinderEnv(TextEnv):
    """Work out the pages for a number of books."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.books, self.sheets = rng.randint(21, 98), rng.randint(3, 19)
        self.pages = rng.randint(21, 98)
        return f"{self.books} books of {self.sheets} sheets, {self.pages} pages each. Pages?", {}

    def step(self, action):
        good = action.strip() == str(self.books * self.sheets * self.pages)
        return ("Bound." if good else "Torn."), 1.0 if good else 0.0, True, False, {}

    def solution(self):
        return [str(self.books * self.sheets * self.pages)]
