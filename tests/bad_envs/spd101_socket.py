# SPD101 | line 3 | socket
import random
from socket import gethostname


class ParishRollEnv(TextEnv):
    """Count the names of a parish roll."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.pages, self.names = rng.randint(21, 98), rng.randint(21, 98)
        return f"{self.pages} pages of {self.names} names ({gethostname()}). Names?", {}

    def step(self, action):
        good = action.strip() == str(self.pages * self.names)
        return "Entered.", 1.0 if good else 0.0, True, False, {}
