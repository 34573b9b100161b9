# SPD403 | any | -2.5
import random


class DebtEnv(TextEnv):
    """Fines more than it may."""

    skill = "strategic_planning"
    max_turns = 3

    def reset(self, seed=None):
        self.number = random.Random(seed).randint(100, 999)
        return f"'pay' settles nothing; 'owe N' with {self.number} times five ends it.", {}

    def step(self, action):
        if action == "pay":
            return "The lender laughs.", -2.5, True, False, {}
        good = action == f"owe {5 * self.number}"
        return "Settled.", 1.0 if good else 0.0, True, False, {}
