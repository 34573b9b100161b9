"""The lines that the families' sources are made of, with their variants.

A block is a piece of a class; it has several variants that do the same in other words or with
another structure. `$name` marks a slot. The tokenizer takes its pieces from here too: a piece is at
most one line, cut at the slots.
"""

from __future__ import annotations

Variants = tuple[str, ...]

HEAD: Variants = (
    '''
class $cls(TextEnv):
    """The $theme $op: $rounds rounds, $options options."""
    skill = "$skill"
    max_turns = $limit
    rounds = $rounds
    options = $options
''',
)

RESET: Variants = (
    """
    def reset(self, seed=None):
        rng = random.Random(seed)
        self.tasks = [self.draw(rng) for _ in range(self.rounds)]
        self.turn = self.right = 0
        return self.tasks[0][0], {}
""",
    """
    def reset(self, seed=None):
        rng = random.Random(seed)
        self.tasks = []
        for _ in range(self.rounds):
            self.tasks.append(self.draw(rng))
        self.turn, self.right = 0, 0
        return self.tasks[0][0], {"rounds": self.rounds}
""",
)

# No variant loops without a bound: one slip of the designer would cost its whole time limit.
# Distractors: `pool` is the circle's expression, `want` is one of its members.
SHOW: Variants = (
    """
        others = [item for item in $pool if item != want]
        shown = rng.sample(others, self.options - 1) + [want]
        rng.shuffle(shown)
""",
    """
        shown = [want]
        for item in rng.sample($pool, len($pool)):
            if item != want and len(shown) < self.options:
                shown.append(item)
        rng.shuffle(shown)
""",
    """
        others = list($pool)
        others.remove(want)
        shown = [want, *rng.sample(others, self.options - 1)]
        rng.shuffle(shown)
""",
)

# `lead` is how the clue is named: " {clue}", " {one} and {two}", or nothing at all.
ASK: Variants = (
    """
        listed = " ".join(map(str, shown))
        return f"The $theme $op$lead. Pick: {listed}", str(want)
""",
    """
        listed = " ".join(str(item) for item in shown)
        text = f"In the $theme you $op$lead. Choose: {listed}"
        return text, str(want)
""",
    """
        listed = " ".join(map(str, shown))
        return f"Now $op$lead at the $theme. Options: {listed}", str(want)
""",
)

STEP: Variants = (
    """
    def step(self, action):
        hit = action == self.tasks[self.turn][1]
        self.turn += 1
        self.right += hit
        if self.turn < self.rounds:
            return self.tasks[self.turn][0], hit / self.rounds, False, False, {}
        if self.right == self.rounds:
            return "Solved.", 1.0, True, False, {}
        return "Over.", hit / self.rounds, True, False, {}
""",
    """
    def step(self, action):
        text, want = self.tasks[self.turn]
        hit = action.strip() == want
        self.turn += 1
        self.right += hit
        over = self.turn == self.rounds
        reward = 1.0 if self.right == self.rounds else hit / self.rounds
        text = "Over." if over else self.tasks[self.turn][0]
        return text, reward, over, False, {"right": self.right}
""",
    """
    def step(self, action):
        if action != self.tasks[self.turn][1]:
            return "Wrong.", 0.0, True, False, {}
        self.turn += 1
        if self.turn == self.rounds:
            return "Solved.", 1.0, True, False, {}
        return self.tasks[self.turn][0], 1 / self.rounds, False, False, {}
""",
)

SOLUTION: Variants = (
    """
    def solution(self):
        return [want for _, want in self.tasks]
""",
    """
    def solution(self):
        return [task[1] for task in self.tasks]
""",
)

# One task of each family that draws its rounds independently.
SHIFT: Variants = (
    """
    def draw(self, rng):
        clue = rng.randrange(10)
        want = (clue $shift) % 10
""",
    """
    def draw(self, rng):
        clue = rng.choice(range(10))
        want = (10 + clue $shift) % 10
""",
)

COMPASS: Variants = (
    """
    points = "north northeast east southeast south southwest west northwest".split()

    def draw(self, rng):
        place = rng.randrange(8)
        clue = self.points[place]
        want = self.points[(place $shift) % 8]
""",
    """
    points = ["north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest"]

    def draw(self, rng):
        clue = rng.choice(self.points)
        want = self.points[(self.points.index(clue) $shift) % 8]
""",
)

LETTERS: Variants = (
    """
    letters = "abcdefghij"

    def draw(self, rng):
        clue = rng.choice(self.letters)
        want = self.letters[(self.letters.index(clue) $shift) % 10]
""",
    """
    letters = "abcdefghij"

    def draw(self, rng):
        place = rng.randrange(10)
        clue, want = self.letters[place], self.letters[(place $shift) % 10]
""",
)

PAIR: Variants = (
    """
    def draw(self, rng):
        one, two = rng.sample(range(10), 2)
        want = $pair
""",
    """
    def draw(self, rng):
        one = rng.randrange(10)
        two = (one + rng.randrange(1, 10)) % 10
        want = $pair
""",
)

PICK: Variants = (
    """
    def draw(self, rng):
        shown = rng.sample(range(20), self.options)
        want = sorted(shown)[$rank]
""",
    """
    def draw(self, rng):
        shown = list(range(20))
        rng.shuffle(shown)
        shown = shown[:self.options]
        want = sorted(shown)[$rank]
""",
)

# The wheel stays where it was turned to, so each round goes on from the one before.
WHEEL: Variants = (
    """
    colours = "red orange yellow green blue indigo violet".split()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.tasks, self.turn, self.right = [], 0, 0
        place = rng.randrange(7)
        for _ in range(self.rounds):
            clue = self.colours[place]
            place = (place $shift) % 7
            self.tasks.append(self.draw(rng, clue, self.colours[place]))
        return self.tasks[0][0], {}

    def draw(self, rng, clue, want):
""",
    """
    colours = ["red", "orange", "yellow", "green", "blue", "indigo", "violet"]

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = self.right = 0
        self.tasks = []
        want = rng.choice(self.colours)
        for _ in range(self.rounds):
            clue = want
            want = self.colours[(self.colours.index(clue) $shift) % 7]
            self.tasks.append(self.draw(rng, clue, want))
        return self.tasks[0][0], {}

    def draw(self, rng, clue, want):
""",
)

DESK_HEAD: Variants = (
    '''
class $cls(ToolEnv):
    """The $theme $op: $rounds orders, $options options."""
    skill = "$skill"
    max_turns = $limit
    rounds = $rounds
    options = $options
''',
)

DESK: Variants = (
    '''
    def setup(self, rng):
        clues = rng.sample(range(10), self.rounds)
        self.tasks = [self.draw(rng, clue, (clue $shift) % 10) for clue in clues]
        self.state = {"box": None}

    @tool
    def send(self, box: int) -> str:
        """Send a parcel.

        box: number of the box
        """
        self.state["box"] = box
        return f"Sent to {box}."

    def user_turns(self):
        return [
            Turn(text, done=lambda state, want=want: str(state["box"]) == want)
            for text, want in self.tasks
        ]

    def solution(self):
        return [[call("send", box=int(want))] for _, want in self.tasks]

    def draw(self, rng, clue, want):
''',
    '''
    def setup(self, rng):
        self.state = {"box": -1}
        self.tasks = []
        for clue in rng.sample(range(10), self.rounds):
            self.tasks.append(self.draw(rng, clue, (clue $shift) % 10))

    @tool
    def send(self, box: int) -> str:
        """Send the parcel to a box.

        box: its number
        """
        self.state["box"] = box
        return "Sent."

    def user_turns(self):
        turns = []
        for text, want in self.tasks:
            turns.append(Turn(text, done=lambda state, want=want: state["box"] == int(want)))
        return turns

    def solution(self):
        return [[call("send", box=int(want))] for _, want in self.tasks]

    def draw(self, rng, clue, want):
''',
)

GATE: Variants = (
    '''
    points = "north northeast east southeast south southwest west northwest".split()

    def setup(self, rng):
        self.tasks = []
        for place in rng.sample(range(8), self.rounds):
            clue, want = self.points[place], self.points[(place $shift) % 8]
            self.tasks.append(self.draw(rng, clue, want))
        self.state = {"gate": ""}

    @tool
    def unlock(self, gate: str) -> str:
        """Unlock a gate.

        gate: name of the gate
        """
        self.state["gate"] = gate
        return f"Unlocked {gate}."

    def user_turns(self):
        return [
            Turn(text, done=lambda state, want=want: state["gate"] == want)
            for text, want in self.tasks
        ]

    def solution(self):
        return [[call("unlock", gate=want)] for _, want in self.tasks]

    def draw(self, rng, clue, want):
''',
)

ALL_BLOCKS: tuple[Variants, ...] = (
    HEAD,
    RESET,
    SHOW,
    ASK,
    STEP,
    SOLUTION,
    SHIFT,
    COMPASS,
    LETTERS,
    PAIR,
    PICK,
    WHEEL,
    DESK_HEAD,
    DESK,
    GATE,
)
