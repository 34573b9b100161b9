class BazaarHaggleEnv(TextEnv):
    """Haggle with a dealer who follows his rules to the letter, until you can pay his price."""

    skill = "strategic_planning"
    max_turns = 8
    rounds = 6

    def reset(self, seed=None):
        rng = random.Random(seed)
        small, large = rng.randint(1, 3), rng.randint(8, 12)
        middle = rng.randint(small + 2, large - 2)
        drops = sorted(rng.sample(range(2, 16), 3))
        self.drops = dict(zip((small, middle, large), drops, strict=True))
        self.offer, self.price = rng.randint(20, 40), rng.randint(90, 130)
        self._plan = min(itertools.product(self.drops, repeat=self.rounds), key=self._ends_at)
        self.purse = self._ends_at(self._plan) + rng.randint(0, 1)
        self.last, self.turn = 0, 0
        habits = ", ".join(
            f"by {raised} or more: down {drop}" for raised, drop in self.drops.items()
        )
        return (
            f"A dealer asks {self.price} for a lamp; you have {self.purse} and have offered "
            f"{self.offer}. Whenever you raise your offer he lowers his price (you raise {habits}; "
            "the last rule that fits counts), but not if the same rule fitted the time before. He "
            f"bargains for {self.rounds} messages: say 'offer N', and 'take' once you can pay.",
            {},
        )

    def _ends_at(self, raises):
        """The smallest purse with which these raises lead to a price that can be paid."""
        fresh = [
            raised for raised, before in zip(raises, (0, *raises), strict=False) if raised != before
        ]
        return max(
            self.offer + sum(raises), self.price - sum(self.drops[raised] for raised in fresh)
        )

    def step(self, action):
        self.turn += 1
        out_of_time = self.turn >= self.max_turns
        verb, _, text = action.strip().lower().partition(" ")
        offer = self.integer(text)
        if verb == "take":
            if self.price <= self.purse:
                return f"You pay {self.price} and carry the lamp home.", 1.0, True, False, {}
            return f"He still asks {self.price}.", 0.0, False, out_of_time, {}
        if verb != "offer" or offer is None or not self.offer < offer <= self.purse:
            return "'offer N' with more than before, or 'take'.", 0.0, False, out_of_time, {}
        rule = max((raised for raised in self.drops if raised <= offer - self.offer), default=0)
        if rule and rule != self.last and self.turn <= self.rounds:
            self.price -= self.drops[rule]
        self.offer, self.last = offer, rule
        return f"He asks {self.price} now.", 0.0, False, out_of_time, {}

    def solution(self):
        offers = itertools.accumulate(self._plan, initial=self.offer)
        return [*(f"offer {offer}" for offer in list(offers)[1:]), "take"]
