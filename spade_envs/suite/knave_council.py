NAMES = ["Alma", "Bert", "Cora", "Dirk", "Enno"]


def claim(rng, speaker):
    """A sentence about the council, and the test that tells whether it is true of given knaves."""
    first, second = rng.sample([name for name in NAMES if name != speaker], 2)
    count = rng.randint(1, 4)
    return rng.choice(
        [
            (f"{first} is a knave.", lambda knaves: first in knaves),
            (f"{first} is honest.", lambda knaves: first not in knaves),
            (
                f"{first} and {second} are of one kind.",
                lambda knaves: (first in knaves) == (second in knaves),
            ),
            (
                f"Of {first} and {second}, just one is a knave.",
                lambda knaves: (first in knaves) != (second in knaves),
            ),
            (f"Exactly {count} of us are knaves.", lambda knaves: len(knaves) == count),
        ]
    )


class KnaveCouncilEnv(TextEnv):
    """Tell from five statements which members of a council always lie."""

    skill = "logical_deduction"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        groups = [set(g) for size in range(6) for g in itertools.combinations(NAMES, size)]
        while True:
            claims = {name: claim(rng, name) for name in NAMES}
            fitting = [
                knaves
                for knaves in groups
                if all(holds(knaves) == (name not in knaves) for name, (_, holds) in claims.items())
            ]
            if len(fitting) == 1 and 2 <= len(fitting[0]) <= 4:
                break
        self._knaves = fitting[0]
        lines = "\n".join(f"{name}: {text}" for name, (text, _) in claims.items())
        return (
            "In a council of five, knaves always lie and the honest always tell the truth.\n"
            f"{lines}\nName all the knaves, separated by spaces.",
            {},
        )

    def step(self, action):
        words = re.findall("[a-z]+", action.lower())
        if {name for name in NAMES if name.lower() in words} == self._knaves:
            return "The council blushes. You are right.", 1.0, True, False, {}
        return "An honest member shakes her head.", 0.0, True, False, {}

    def solution(self):
        return [" ".join(sorted(self._knaves))]
