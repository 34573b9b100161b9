class StampDrawerEnv(TextEnv):
    """Count the ways to pay a letter's postage exactly with three kinds of stamps."""

    skill = "mathematical_reasoning"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        self._ways = 0
        while self._ways < 8:
            stamps = sorted(rng.sample(range(2, 12), 3))
            postage = rng.randint(24, 60)
            self._ways = self._count(stamps, postage)
        few, mid, many = stamps
        return (
            f"A drawer holds plenty of stamps worth {few}, {mid} and {many} cents. In how many "
            f"ways can they make exactly {postage} cents? The order on the envelope does not "
            "matter. Reply with the number.",
            {},
        )

    def _count(self, stamps, postage):
        ways = [1] + [0] * postage
        for stamp in stamps:
            for amount in range(stamp, postage + 1):
                ways[amount] += ways[amount - stamp]
        return ways[postage]

    def step(self, action):
        if action.strip() == str(self._ways):
            return "The clerk stamps the letter. Correct!", 1.0, True, False, {}
        return "The clerk shakes her head.", 0.0, True, False, {}

    def solution(self):
        return [str(self._ways)]
