import heapq

PEOPLE = "ABCDE"


class LanternBridgeEnv(TextEnv):
    """Bring five hikers over a rope bridge before their only lantern goes out."""

    skill = "strategic_planning"
    max_turns = 12

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.minutes = dict(zip(PEOPLE, rng.sample(range(1, 16), len(PEOPLE)), strict=True))
        self.here, self.lantern_here = set(PEOPLE), True
        self.oil, self._plan = self._search()
        self.turn = 0
        pace = ", ".join(f"{name} needs {minutes}" for name, minutes in self.minutes.items())
        return (
            f"Five hikers stand on the near side of a bridge with one lantern: {pace} minutes. One "
            "or two cross at a time, with the lantern, at the pace of the slower one. It burns for "
            f"{self.oil} minutes. Say who crosses next, like 'A B' or 'A': over and back in turn.",
            {},
        )

    def _search(self):
        """The least time, and the crossings that take it."""
        queue, seen = [(0, [], PEOPLE, True)], set()
        while True:
            spent, plan, near, over = heapq.heappop(queue)
            if not near:
                return spent, plan
            if (near, over) in seen:
                continue
            seen.add((near, over))
            side = near if over else [name for name in PEOPLE if name not in near]
            for group in [*itertools.combinations(side, 2), *itertools.combinations(side, 1)]:
                rest = "".join(n for n in PEOPLE if (n in near) != (n in group))
                slowest = max(self.minutes[name] for name in group)
                heapq.heappush(queue, (spent + slowest, [*plan, " ".join(group)], rest, not over))

    def step(self, action):
        self.turn += 1
        group = set(action.upper().split())
        side = self.here if self.lantern_here else set(PEOPLE) - self.here
        out_of_time = self.turn >= self.max_turns
        if not 1 <= len(group) <= 2 or not group <= side:
            return f"Only {' '.join(sorted(side))} can go now.", 0.0, False, out_of_time, {}
        self.here ^= group
        self.lantern_here = not self.lantern_here
        self.oil -= max(self.minutes[name] for name in group)
        if self.oil < 0:
            return "The lantern goes out on the bridge.", 0.0, True, False, {}
        if not self.here:
            return "All five are over!", 1.0, True, False, {}
        near = " ".join(sorted(self.here))
        return f"Near side: {near}. Oil for {self.oil} minutes.", 0.0, False, out_of_time, {}

    def solution(self):
        return list(self._plan)
