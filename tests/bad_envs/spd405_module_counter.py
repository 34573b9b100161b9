# SPD405 | any | other episodes
import itertools
import random

TICKETS = itertools.count(1)


class TicketDeskEnv(TextEnv):
    """A counter at module level numbers the answers."""

    skill = "mathematical_reasoning"
    max_turns = 3

    def reset(self, seed=None):
        self.turn, self.number = 0, random.Random(seed).randint(100, 999)
        return f"{self.number} times sixteen?", {}

    def step(self, action):
        self.turn += 1
        good = action.strip() == str(16 * self.number)
        note = f"Ticket {next(TICKETS)}."
        return note, 1.0 if good else 0.0, good, self.turn >= 3, {}

    def solution(self):
        return [str(16 * self.number)]
