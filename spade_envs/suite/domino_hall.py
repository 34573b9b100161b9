CAUSES = {
    "the cat jumps": "the cat had not jumped",
    "the wind blows": "the wind had not blown",
    "the clock strikes": "the clock had not struck",
}
PARTS = {
    "the ball rolls": "someone had held the ball",
    "the rope slips": "someone had held the rope",
    "the bucket tips": "someone had held the bucket",
    "the wheel turns": "someone had held the wheel",
    "the bell rings": "someone had held the bell",
}
GATES = {
    "{a} and {b}": lambda a, b: a and b,
    "{a} or {b}": lambda a, b: a or b,
    "{a}, unless {b}": lambda a, b: a and not b,
}


class DominoHallEnv(TextEnv):
    """Say what would have happened in a hall of falling things, had one of them not moved."""

    skill = "causal_inference"
    max_turns = 4

    def reset(self, seed=None):
        rng = random.Random(seed)
        self._asked, self.round = [], 0
        while len({answer for _, answer in self._asked}) < 2:
            self._rules, earlier = {}, list(CAUSES)
            for part in PARTS:
                self._rules[part] = rng.choice(list(GATES)), *rng.sample(earlier[-4:], 2)
                earlier.append(part)
            self._happened = {cause: rng.random() < 0.75 for cause in CAUSES}
            facts = self._run(None)
            moved = [event for event in [*CAUSES, *PARTS][:-1] if facts[event]]
            held = rng.sample(moved, min(4, len(moved)))
            self._asked = [
                (event, "yes" if self._run(event)["the bell rings"] else "no") for event in held
            ]
            if len(held) < 4:
                self._asked = []
        rules = "\n".join(
            f"- {part.capitalize()} if {gate.format(a=a, b=b)}."
            for part, (gate, a, b) in self._rules.items()
        )
        seen = " ".join(f"{c.capitalize()}." for c in CAUSES if self._happened[c])
        return f"{rules}\nThis happened today, and nothing else began it: {seen}\n{self._ask()}", {}

    def _run(self, stopped):
        """What happens with today's causes if one event is kept from happening."""
        facts = {cause: moved and cause != stopped for cause, moved in self._happened.items()}
        for part, (gate, a, b) in self._rules.items():
            facts[part] = GATES[gate](facts[a], facts[b]) and part != stopped
        return facts

    def _ask(self):
        event, _ = self._asked[self.round]
        change = {**CAUSES, **PARTS}[event]
        return f"{self.round + 1}. If {change}, would the bell have rung today? Answer yes or no."

    def step(self, action):
        if action.strip().lower().rstrip(".") != self._asked[self.round][1]:
            return "No, the hall would have done otherwise.", 0.0, True, False, {}
        self.round += 1
        if self.round == len(self._asked):
            return "Right. You know the hall by heart.", 1.0, True, False, {}
        return f"Right. {self._ask()}", 0.1, False, False, {}

    def solution(self):
        return [answer for _, answer in self._asked]
