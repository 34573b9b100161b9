# SPD401 | line 20 | ValueError
import random


class TideMarkEnv(TextEnv):
    """isdigit() holds for a superscript two, int() does not read it."""

    skill = "logical_deduction"
    max_turns = 10

    def reset(self, seed=None):
        self.mark, self.turn = random.Random(seed).randint(100, 999), 0
        return "Guess the tide mark, 1 to 1000. I say up or down.", {}

    def step(self, action):
        self.turn += 1
        text = action.strip()
        over = self.turn >= 10
        if text.isdigit() and len(text) < 5:
            guess = int(text)
            if guess == self.mark:
                return "That is it.", 1.0, True, False, {}
            return ("Up." if guess < self.mark else "Down."), 0.0, False, over, {}
        return "A number, please.", 0.0, False, over, {}
