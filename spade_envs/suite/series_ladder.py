def growing(rng):
    value, step, more = rng.randint(1, 30), rng.randint(2, 9), rng.randint(2, 6)
    while True:
        yield value
        value, step = value + step, step + more


def two_before(rng):
    before, value = rng.randint(1, 9), rng.randint(2, 12)
    extra = rng.randint(1, 5)
    while True:
        yield before
        before, value = value, before + value + extra


def seesaw(rng):
    value, times, less = rng.randint(3, 9), rng.choice([2, 3]), rng.randint(2, 9)
    while True:
        yield value
        yield value * times
        value = value * times - less


def braided(rng):
    first, second = rng.randint(1, 40), rng.randint(60, 99)
    up, down = rng.randint(3, 12), rng.randint(2, 8)
    while True:
        yield first
        yield second
        first, second = first + up, second - down


class SeriesLadderEnv(TextEnv):
    """Continue three number series, one after the other."""

    skill = "pattern_recognition"
    max_turns = 3
    credits = (0.15, 0.3, 1.0)

    def reset(self, seed=None):
        rng = random.Random(seed)
        kinds = rng.sample([growing, two_before, seesaw, braided], 3)
        self._series = [list(itertools.islice(kind(rng), 9)) for kind in kinds]
        self.rung = 0
        return "Reply with the next two numbers of each series.\n" + self._question(), {}

    def _question(self):
        shown = ", ".join(map(str, self._series[self.rung][:7]))
        return f"Series {self.rung + 1} of 3: {shown}, ..."

    def step(self, action):
        given = re.findall("-?[0-9]+", action)
        if given != [str(number) for number in self._series[self.rung][7:]]:
            return "The ladder breaks: those do not come next.", 0.0, True, False, {}
        reward = self.credits[self.rung]
        self.rung += 1
        if self.rung == 3:
            return "You reach the top of the ladder.", reward, True, False, {}
        return f"Right.\n{self._question()}", reward, False, False, {}

    def solution(self):
        return [" ".join(map(str, series[7:])) for series in self._series]
