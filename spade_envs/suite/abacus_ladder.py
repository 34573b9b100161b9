from collections import deque

TOP = 400


class AbacusLadderEnv(TextEnv):
    """Climb from one number to another with three levers, in few pulls."""

    skill = "mathematical_reasoning"
    max_turns = 12

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self._path = []
        while not 5 <= len(self._path) <= 8:
            up, down, times = rng.randint(5, 19), rng.randint(3, 17), rng.choice([2, 3])
            self._levers = {
                "red": lambda n, up=up: n + up,
                "green": lambda n, down=down: n - down,
                "blue": lambda n, times=times: n * times,
            }
            self.number, self.target = rng.randint(2, 20), rng.randint(60, 300)
            self._path = self._search()
        return (
            f"An abacus shows {self.number} and must show exactly {self.target}. Pull one lever "
            f"at a time: red adds {up}, green takes {down} away, blue multiplies by {times}. A "
            f"pull that would lead below 0 or above {TOP} does nothing. You have {self.max_turns}.",
            {},
        )

    def _pull(self, number, lever):
        result = self._levers[lever](number)
        return result if 0 <= result <= TOP else number

    def _search(self):
        queue, paths = deque([self.number]), {self.number: []}
        while queue:
            number = queue.popleft()
            if number == self.target:
                return paths[number]
            for lever in self._levers:
                result = self._pull(number, lever)
                if result not in paths:
                    paths[result] = [*paths[number], lever]
                    queue.append(result)
        return []

    def step(self, action):
        self.turn += 1
        lever = action.strip().lower()
        if lever in self._levers:
            self.number = self._pull(self.number, lever)
        if self.number == self.target:
            return f"The abacus shows {self.number}. You are there!", 1.0, True, False, {}
        left = self.max_turns - self.turn
        return f"The abacus shows {self.number}; {left} pulls left.", 0.0, False, left == 0, {}

    def solution(self):
        return list(self._path)
