DEAREST = 30


class StallPriceEnv(TextEnv):
    """Try prices on a market stall, then fix the one that earns the most."""

    skill = "optimization"
    max_turns = 7

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.cost = rng.randint(2, 9)
        self._slope, self._loss = rng.randint(1, 5), rng.randint(2, 9)
        self._rival = rng.randint(8, 22)
        self._crowd = self._slope * DEAREST + self._loss * (DEAREST - self._rival)
        self._crowd += rng.randint(0, 30)
        self._most = max(self._profit(price) for price in range(1, DEAREST + 1))
        self.turn = 0
        return (
            f"A jar of honey costs you {self.cost}. For each coin on the price, the same number of "
            "buyers is lost; above the price of a hidden rival, a larger number is lost for each "
            f"coin. 'try 12' sells for a day at 12 (1 to {DEAREST} is allowed); 'fix 12' fixes the "
            "price for the year, and must earn the highest daily profit.\n"
            f"Yesterday you sold {self._buyers(10)} jars at 10.",
            {},
        )

    def _buyers(self, price):
        return self._crowd - self._slope * price - self._loss * max(0, price - self._rival)

    def _profit(self, price):
        return (price - self.cost) * self._buyers(price)

    def step(self, action):
        self.turn += 1
        out_of_time = self.turn >= self.max_turns
        verb, _, text = action.strip().lower().partition(" ")
        price = self.integer(text)
        if verb not in ("try", "fix") or price is None or not 1 <= price <= DEAREST:
            return "Say 'try 12' or 'fix 12'.", 0.0, False, out_of_time, {}
        buyers, profit = self._buyers(price), self._profit(price)
        if verb == "try":
            return f"{buyers} jars sold, profit {profit}.", 0.0, False, out_of_time, {}
        if profit == self._most:
            return f"Profit {profit} a day: the best there is.", 1.0, True, False, {}
        credit = max(0.0, profit / self._most - 0.7)
        return f"Profit {profit} a day; {self._most} was there.", round(credit, 3), True, False, {}

    def solution(self):
        prices = range(1, DEAREST + 1)
        best = next(price for price in prices if self._profit(price) == self._most)
        return ["try 1", "try 2", "try 29", "try 30", f"fix {best}"]
