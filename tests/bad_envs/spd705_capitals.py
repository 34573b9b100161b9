# SPD705 | any | hint
import random

PLACES = {
    "oslo": "fjords and a ship museum",
    "lima": "the Andes behind it and the Pacific before it",
    "cairo": "the Nile and a sphinx nearby",
    "rome": "seven hills and one river",
}


class CapitalsEnv(TextEnv):
    """Name the capital that is described."""

    skill = "language_understanding"
    max_turns = 2

    def reset(self, seed=None):
        self.turn, self.city = 0, random.Random(seed).choice(sorted(PLACES))
        return f"A capital with {PLACES[self.city]}. Which?", {}

    def step(self, action):
        self.turn += 1
        if action.strip().lower() == self.city:
            return "Yes.", 1.0, True, False, {}
        return "No.", 0.0, False, self.turn >= 2, {}

    def solution(self):
        return [self.city]
