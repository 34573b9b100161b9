from functools import cache

LAKE = 6


class TurbineWeekEnv(TextEnv):
    """Release a lake's water through a turbine on the days when power is dear."""

    skill = "optimization"
    max_turns = 7

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.prices = [rng.randint(4, 30) for _ in range(self.max_turns)]
        self.rain = [rng.choice([0, 1, 1, 2]) for _ in range(self.max_turns)]
        self.water = rng.randint(1, 4)
        self.day = 0
        self.earned = 0
        self._best, self._plan = self._search()
        return (
            f"A lake feeds a turbine for {self.max_turns} days. Each day you release 0, 1, 2 or 3 "
            "units of what it holds and sell each at the day's price; then the day's rain falls "
            f"in, and what is above {LAKE} units is lost. Earn the most that can be earned.\n"
            f"Prices: {self.prices}. Rain: {self.rain}.\n{self._view()}",
            {},
        )

    def _view(self):
        return f"Day {self.day + 1}: the lake holds {self.water}, earned so far {self.earned}."

    def _search(self):
        @cache
        def best(day, water):
            if day == self.max_turns:
                return 0, ()
            options = []
            for units in range(min(3, water) + 1):
                later, plan = best(day + 1, min(LAKE, water - units + self.rain[day]))
                options.append((units * self.prices[day] + later, (units, *plan)))
            return max(options)

        return best(0, self.water)

    def step(self, action):
        wanted = action.strip()
        units = min(int(wanted), self.water) if wanted in ("0", "1", "2", "3") else 0
        self.earned += units * self.prices[self.day]
        self.water = min(LAKE, self.water - units + self.rain[self.day])
        self.day += 1
        if self.day < self.max_turns:
            return f"Released {units}. {self._view()}", 0.0, False, False, {}
        if self.earned == self._best:
            return f"Earned {self.earned}: nobody could earn more.", 1.0, True, False, {}
        credit = max(0.0, self.earned / self._best - 0.7)
        return f"Earned {self.earned} of {self._best}.", round(credit, 3), True, False, {}

    def solution(self):
        return [str(units) for units in self._plan]
