# SPD401 | line 28 | KeyError
import random

ROOMS = {"hall": ["study"], "study": ["hall", "vault"]}


class ManorEnv(TextEnv):
    """A map that misses the room behind the second door."""

    skill = "spatial_reasoning"
    max_turns = 12

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn, self.place, self.code = 0, "hall", rng.randint(100, 999)
        return "You stand in the hall. 'go ROOM' or 'open N'. The study is next door.", {}

    def step(self, action):
        self.turn += 1
        over = self.turn >= 12
        verb, _, rest = action.strip().partition(" ")
        if verb == "open":
            good = rest == str(self.code) and self.place == "study"
            return "Click.", 1.0 if good else 0.0, True, False, {}
        if verb == "go" and rest in ROOMS[self.place]:
            self.place = rest
            note = f" The safe says {self.code}." if rest == "study" else ""
            return f"You are in the {rest}; doors: {ROOMS[rest]}.{note}", 0.0, False, over, {}
        return "No such door.", 0.0, False, over, {}

    def solution(self):
        return ["go study", f"open {self.code}"]
