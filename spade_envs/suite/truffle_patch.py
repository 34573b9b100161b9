from collections import Counter

SQUARES = [row + column for row in "ABCD" for column in "1234"]


def near(square, other):
    """True for a square itself and the up to eight squares around it."""
    return abs(ord(square[0]) - ord(other[0])) <= 1 and abs(int(square[1]) - int(other[1])) <= 1


def grunts(square, truffles):
    return sum(near(square, truffle) for truffle in truffles)


class TrufflePatchEnv(TextEnv):
    """Let a pig sniff a wood of sixteen squares, then dig where the three truffles are."""

    skill = "logical_deduction"
    max_turns = 12

    def reset(self, seed=None):
        rng = random.Random(seed)
        self._truffles = set(rng.sample(SQUARES, 3))
        self.first = rng.choice(SQUARES)
        self.turn = 0
        return (
            "Three truffles lie under three squares of a 4x4 wood, rows A to D, columns 1 to 4. "
            "A pig grunts once for each truffle under the square it sniffs and those that touch "
            "it, corners included. Say 'sniff B2', or once 'dig A1 B2 C3' with all three squares.\n"
            f"Grunts at {self.first}: {grunts(self.first, self._truffles)}.",
            {},
        )

    def step(self, action):
        self.turn += 1
        out_of_time = self.turn >= self.max_turns
        verb, *squares = action.upper().split() or [""]
        if verb == "SNIFF" and len(squares) == 1 and squares[0] in SQUARES:
            heard = grunts(squares[0], self._truffles)
            return f"Grunts at {squares[0]}: {heard}.", 0.0, False, out_of_time, {}
        if verb == "DIG" and len(set(squares)) == 3 and set(squares) <= set(SQUARES):
            found = len(self._truffles & set(squares))
            if found == 3:
                return "Three truffles! A feast.", 1.0, True, False, {}
            return f"You found {found}.", 0.1 * found, True, False, {}
        return "The pig looks at you. Sniff one square, or dig three.", 0.0, False, out_of_time, {}

    def solution(self):
        possible = list(itertools.combinations(SQUARES, 3))
        square, plan = self.first, []
        while True:
            heard = grunts(square, self._truffles)
            possible = [three for three in possible if grunts(square, three) == heard]
            if len(possible) == 1:
                return [*plan, "dig " + " ".join(possible[0])]
            rests = {s: Counter(grunts(s, three) for three in possible) for s in SQUARES}
            square = min(SQUARES, key=lambda s: max(rests[s].values()))
            plan.append(f"sniff {square}")
