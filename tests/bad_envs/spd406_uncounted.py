# SPD406 | any | max_turns = 5
import random


class PatientClerkEnv(TextEnv):
    """Unreadable messages are not counted as turns."""

    skill = "mathematical_reasoning"
    max_turns = 5

    def reset(self, seed=None):
        self.turn, self.number = 0, random.Random(seed).randint(100, 999)
        return f"{self.number} times seventeen?", {}

    def step(self, action):
        text = action.strip()
        if not (text.isascii() and text.isdecimal()):
            return "The clerk waits for a number.", 0.0, False, False, {}
        self.turn += 1
        good = text == str(17 * self.number)
        return "Seen.", 1.0 if good else 0.0, good, self.turn >= 5, {}

    def solution(self):
        return [str(17 * self.number)]
