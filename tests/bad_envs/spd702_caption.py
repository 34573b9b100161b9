# SPD702 | any | first observation
import random


class VaultEnv(TextEnv):
    """The caption of the task gives the combination away."""

    skill = "logical_deduction"
    max_turns = 2

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn, self.code = 0, rng.randint(1000, 9999)
        state = f"[vault|code:{self.code}|tries:2|lamp:on|door:north|guard:asleep|dog:none]"
        return f"{state} 'try N' until it opens; I tell the digit sum.", {}

    def step(self, action):
        self.turn += 1
        if action == f"try {self.code}":
            return "Open.", 1.0, True, False, {}
        total = sum(map(int, str(self.code)))
        return f"Closed. Digit sum {total}.", 0.0, False, self.turn >= 2, {}

    def solution(self):
        return [f"try {self.code}"]
