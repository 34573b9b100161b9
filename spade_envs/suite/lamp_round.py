def length(route, lamps):
    """Steps of a walk from the gate at 0,0 past the lamps and back, along streets."""
    stops = [(0, 0), *(lamps[name] for name in route), (0, 0)]
    return sum(abs(a - c) + abs(b - d) for (a, b), (c, d) in itertools.pairwise(stops))


class LampRoundEnv(TextEnv):
    """Plan the lamplighter's shortest round from the gate and back."""

    skill = "optimization"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        streets = list(itertools.product(range(10), range(10)))[1:]
        self.lamps = dict(zip("PQRSTU", rng.sample(streets, 6), strict=True))
        self._best = min(itertools.permutations("PQRSTU"), key=lambda r: length(r, self.lamps))
        places = "\n".join(f"  {name} at {x},{y}" for name, (x, y) in self.lamps.items())
        return (
            f"A lamplighter starts at the gate, 0,0, lights six lamps and comes back:\n{places}\n"
            "Streets run along both directions of the grid, so the way between two places is the "
            "sum of both differences. In which order is the round shortest? Reply with letters.",
            {},
        )

    def step(self, action):
        route = re.findall("[A-Z]", action.upper())
        if sorted(route) != sorted(self.lamps):
            return "Name each of the six lamps once.", 0.0, True, False, {}
        walked, best = length(route, self.lamps), length(self._best, self.lamps)
        if walked == best:
            return f"{walked} steps: no round is shorter.", 1.0, True, False, {}
        credit = max(0.0, best / walked - 0.75)
        return f"{walked} steps; {best} would do.", round(credit, 3), True, False, {}

    def solution(self):
        return [" ".join(self._best)]
