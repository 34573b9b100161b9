def tilt(left, right, coin, weight):
    """Which side sinks if `coin` is heavy or light and all the others are equal."""
    side = (coin in left) - (coin in right)
    return ["level", "left", "right"][side * (1 if weight == "heavy" else -1)]


class CoinBalanceEnv(TextEnv):
    """Find the false coin, and whether it is heavy or light, with four weighings."""

    skill = "logical_deduction"
    max_turns = 5

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.coins = sorted(rng.sample("ABCDEFGHJKLMNPQRSTUVWXYZ", rng.randint(8, 11)))
        self.true = rng.choice(self.coins)
        self.suspects = [coin for coin in self.coins if coin != self.true]
        self._false = rng.choice(self.suspects), rng.choice(["heavy", "light"])
        self.turn = 0
        return (
            f"One of the coins {' '.join(self.coins)} is false: heavier or lighter than the rest. "
            f"{self.true} is known to be true. 'weigh AB CD' puts A and B on the left pan, C and "
            "D on the right one. After at most four weighings say once 'accuse A heavy' or "
            "'accuse A light'.",
            {},
        )

    def step(self, action):
        self.turn += 1
        out_of_time = self.turn >= self.max_turns
        match action.upper().split():
            case ["WEIGH", left, right] if self._fair(left + right) and len(left) == len(right):
                side = tilt(left, right, *self._false)
                sinks = "The pans are level." if side == "level" else f"The {side} pan sinks."
                return sinks, 0.0, False, out_of_time, {}
            case ["ACCUSE", coin, ("HEAVY" | "LIGHT") as weight]:
                if (coin, weight.lower()) == self._false:
                    return "The false coin is found!", 1.0, True, False, {}
                return "That coin is as good as any.", 0.0, True, False, {}
        return "Weigh as many of these coins left as right.", 0.0, False, out_of_time, {}

    def _fair(self, coins):
        return len(set(coins)) == len(coins) and set(coins) <= set(self.coins)

    def solution(self):
        rng = random.Random(1)
        possible = list(itertools.product(self.suspects, ["heavy", "light"]))
        plan = []
        while len(possible) > 1:
            best = None
            for _ in range(150):  # the best of many weighings leaves the fewest cases
                pan = rng.randint(1, len(self.coins) // 2)
                drawn = "".join(rng.sample(self.coins, 2 * pan))
                sides = [tilt(drawn[:pan], drawn[pan:], *case) for case in possible]
                worst = max(sides.count(side) for side in ("left", "right", "level"))
                best = min(best or (99, ""), (worst, drawn))
            pan = len(best[1]) // 2
            left, right = best[1][:pan], best[1][pan:]
            seen = tilt(left, right, *self._false)
            possible = [case for case in possible if tilt(left, right, *case) == seen]
            plan.append(f"weigh {left} {right}")
        return [*plan, "accuse {} {}".format(*self._false)]
