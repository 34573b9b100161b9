DAYS = ["Tuesday", "Thursday", "Sunday"]
NAMES = ["Mira", "Otto", "Pia", "Quinn", "Rolf", "Suna"]


def rules(rng, today):
    """Three sentences of a notice, each with the test that says whom it lets in free."""
    young, old = rng.randint(7, 14), rng.randint(60, 70)
    day, other = rng.sample(DAYS, 2)
    ways = [
        (
            f"Children under {young} pay nothing unless they come alone.",
            lambda v: v["age"] < young and not v["alone"],
        ),
        (
            f"Nobody over {old} pays, except on {day}s.",
            lambda v: v["age"] > old and today != day,
        ),
        (
            f"Students come in free on {other}s, but only those who are members too.",
            lambda v: v["student"] and v["member"] and today == other,
        ),
        (
            f"Members need no ticket, save for those under {young + 10}.",
            lambda v: v["member"] and v["age"] >= young + 10,
        ),
        (
            "Students pay nothing either, unless they come alone and are no members.",
            lambda v: v["student"] and not (v["alone"] and not v["member"]),
        ),
    ]
    return [ways[0], *rng.sample(ways[1:3], 1), *rng.sample(ways[3:], 1)]


class MuseumNoticeEnv(TextEnv):
    """Read a museum's notice with its exceptions and say which visitors enter free."""

    skill = "language_understanding"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        today = rng.choice(DAYS)
        while True:
            notice = rules(rng, today)
            visitors = {name: self._visitor(rng) for name in rng.sample(NAMES, 5)}
            self._free = {
                name for name, v in visitors.items() if any(free(v) for _, free in notice)
            }
            if 2 <= len(self._free) <= 4:
                break
        lines = "\n".join(f"{name}: {self._describe(v)}." for name, v in visitors.items())
        return (
            f"Notice: {' '.join(text for text, _ in notice)} To enter free it is "
            "enough that one of these sentences says so; everybody else buys a ticket.\n"
            f"Today is {today}.\n{lines}\nWho enters free? Reply with all their names.",
            {},
        )

    def _visitor(self, rng):
        age = rng.choice([rng.randint(4, 16), rng.randint(17, 59), rng.randint(60, 85)])
        flags = {key: rng.random() < 0.5 for key in ("student", "member", "alone")}
        return {"age": age, **flags, "student": flags["student"] and age >= 16}

    def _describe(self, visitor):
        words = [f"{visitor['age']} years old", "alone" if visitor["alone"] else "with a friend"]
        words += [key for key in ("student", "member") if visitor[key]]
        return ", ".join(words)

    def step(self, action):
        words = re.findall("[a-z]+", action.lower())
        if {name for name in NAMES if name.lower() in words} == self._free:
            return "The doorkeeper lets exactly these in.", 1.0, True, False, {}
        return "The doorkeeper points at the notice.", 0.0, True, False, {}

    def solution(self):
        return [" ".join(sorted(self._free))]
