"""Short environments as templates, as a small designer model writes them.

Each takes a name for the class and two numbers, `low` and `high`.
"""

from __future__ import annotations

ONE_TURN = '''
class {name}Env(TextEnv):
    """Work out what {name} needs."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.first, self.second = rng.randint({low}, {high}), rng.randint({low}, {high})
        return f"{{self.first}} rows of {{self.second}}, and {low} more. How many?", {{}}

    def step(self, action):
        good = action.strip() == str(self.first * self.second + {low})
        return ("Right." if good else "Wrong."), 1.0 if good else 0.0, True, False, {{}}

    def solution(self):
        return [str(self.first * self.second + {low})]
'''

GUESS = '''
class {name}Env(TextEnv):
    """Find the number that {name} keeps."""

    skill = "logical_deduction"
    max_turns = 16

    def reset(self, seed=None):
        self.secret = random.Random(seed).randint({low}, {high}00)
        self.turn = 0
        return "A number from {low} to {high}00. Guess; I say higher or lower.", {{}}

    def step(self, action):
        self.turn += 1
        text = action.strip()
        over = self.turn >= self.max_turns
        if not (text.isascii() and text.isdecimal() and len(text) < 9):
            return "A number, please.", 0.0, False, over, {{}}
        guess = int(text)
        if guess == self.secret:
            return "That is it.", 1.0, True, False, {{}}
        return ("Higher." if guess < self.secret else "Lower."), 0.0, False, over, {{}}

    def solution(self):
        low, high, said = {low}, {high}00, []
        while not said or said[-1] != str(self.secret):
            middle = (low + high) // 2
            said.append(str(middle))
            low, high = (middle + 1, high) if middle < self.secret else (low, middle - 1)
        return said
'''

SHELF = '''
class {name}Env(ToolEnv):
    """Put the things of {name} away."""

    skill = "state_modification"

    def setup(self, rng):
        self.box = rng.randint({low}, {high}00)
        self.state = {{"put": []}}

    @tool
    def put(self, box: int) -> str:
        """Put a box on the shelf."""
        self.state["put"].append(box)
        return "put"

    def user_turns(self):
        return [
            Turn(f"Put box {{self.box + i}}.", done=lambda s, i=i: self.box + i in s["put"])
            for i in range(3)
        ]

    def solution(self):
        return [[call("put", box=self.box + i)] for i in range(3)]
'''
