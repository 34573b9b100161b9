class BrassCalculatorEnv(TextEnv):
    """Find the formula inside a brass calculator and foretell a number out of its reach."""

    skill = "mathematical_reasoning"
    max_turns = 6

    def reset(self, seed=None):
        rng = random.Random(seed)
        self._a, self._b = rng.choice([-4, -3, -2, 2, 3, 4]), rng.randint(-9, 9)
        self._c = rng.randint(-30, 30)
        self.far = rng.randint(12, 60)
        self.turn = 0
        shown = rng.randint(-5, 5)
        return (
            "A brass calculator turns a whole number x into a*x*x + b*x + c; the whole numbers a, "
            "b and c are engraved inside. 'crank X' shows the result for an x from -5 to 5. Then "
            f"say once 'foretell N', where N is what it would give for x = {self.far}.\n"
            f"A note on the lid says: {shown} becomes {self._crank(shown)}.",
            {},
        )

    def _crank(self, x):
        return self._a * x * x + self._b * x + self._c

    def step(self, action):
        self.turn += 1
        out_of_time = self.turn >= self.max_turns
        verb, _, text = action.strip().lower().partition(" ")
        number = self.integer(text)
        if verb == "crank" and number is not None and -5 <= number <= 5:
            return f"{number} becomes {self._crank(number)}.", 0.0, False, out_of_time, {}
        if verb == "foretell" and number is not None:
            if number == self._crank(self.far):
                return "The engraver nods: exactly right.", 1.0, True, False, {}
            return "The engraver winces.", 0.0, True, False, {}
        return "The crank is stuck. Say 'crank 3' or 'foretell 99'.", 0.0, False, out_of_time, {}

    def solution(self):
        return ["crank 0", "crank 1", "crank -1", f"foretell {self._crank(self.far)}"]
