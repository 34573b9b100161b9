# SPD401 | line 21 | FileNotFoundError
import random


class DoorKeeperEnv(TextEnv):
    """Its close has never been tried."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        self.number = random.Random(seed).randint(100, 999)
        return f"{self.number} times eight?", {}

    def step(self, action):
        good = action.strip() == str(8 * self.number)
        return "Seen.", 1.0 if good else 0.0, True, False, {}

    def close(self):
        if self.number:
            raise FileNotFoundError("no log was opened")

    def solution(self):
        return [str(8 * self.number)]
