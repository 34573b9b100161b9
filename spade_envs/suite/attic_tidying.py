THINGS = ["violin", "globe", "kite", "sabre", "teapot", "mask"]
PLACES = ["trunk", "cradle", "drawer", "cupboard", "basket", "barrel"]


class AtticTidyingEnv(TextEnv):
    """Follow how things are moved about in an attic, then say where some of them are."""

    skill = "memory_recall"
    max_turns = 16
    moves = 8

    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self._at = dict(zip(THINGS, self.rng.sample(PLACES, len(PLACES)), strict=True))
        start = ", ".join(f"the {thing} in the {place}" for thing, place in self._at.items())
        self._story = [self._move() for _ in range(self.moves)]
        self._asked = self.rng.sample(THINGS, 3)
        self.turn, self.told, self.right = 0, 0, 0
        return (
            f"An attic keeps {start}.\nNow it is tidied, {self.moves} times; say 'next' to hear "
            "each change once. Then three questions follow; one wrong answer ends it.",
            {},
        )

    def _move(self):
        first, second = self.rng.sample(THINGS, 2)
        here, there = self._at[first], self._at[second]
        self._at[first], self._at[second] = there, here
        return self.rng.choice(
            [
                f"The {first} and the {second} change places.",
                f"What lies in the {here} goes to the {there}, and the other way round.",
                f"The {first} goes to the {there}; what was there takes its old place.",
            ]
        )

    def step(self, action):
        self.turn += 1
        out_of_time = self.turn >= self.max_turns
        text = action.strip().lower()
        if self.told < self.moves:
            if text != "next":
                return "The attic waits for 'next'.", 0.0, False, out_of_time, {}
            self.told += 1
            change = self._story[self.told - 1]
            if self.told == self.moves:
                change += " " + self._question()
            return change, 0.0, False, out_of_time, {}
        thing = self._asked[self.right]
        if [place for place in PLACES if place in text] != [self._at[thing]]:
            return f"No, the {thing} is not there.", 0.0, True, False, {}
        self.right += 1
        if self.right == len(self._asked):
            return "You know this attic.", 1.0, True, False, {}
        return f"Yes. {self._question()}", 0.1, False, out_of_time, {}

    def _question(self):
        return f"Where is the {self._asked[self.right]}?"

    def solution(self):
        return ["next"] * self.moves + [self._at[thing] for thing in self._asked]
