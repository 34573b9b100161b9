class TonicTrialEnv(TextEnv):
    """Tell what a tonic really does when it was given mostly to one age group."""

    skill = "causal_inference"
    max_turns = 1

    def reset(self, seed=None):
        rng = random.Random(seed)
        while True:
            young = rng.choice([30, 40, 60, 70])
            size = {"young": young, "old": 100 - young}
            mostly, rarely = rng.sample(["young", "old"], 2)
            given = {mostly: size[mostly] - 10, rarely: 10}
            people = {(age, "tonic"): given[age] for age in size}
            people |= {(age, "no tonic"): size[age] - given[age] for age in size}
            tenths = {group: rng.randint(1, 9) for group in people}
            well = {group: people[group] * tenths[group] // 10 for group in people}
            self._effect = sum(
                size[age] * (tenths[age, "tonic"] - tenths[age, "no tonic"]) // 10 for age in size
            )
            shares = {
                arm: (well["young", arm] + well["old", arm])
                / (people["young", arm] + people["old", arm])
                for arm in ("tonic", "no tonic")
            }
            self._raw = round(100 * (shares["tonic"] - shares["no tonic"]))
            if abs(self._effect - self._raw) >= 5:
                break
        rows = "\n".join(
            f"{age}, {arm}: {people[age, arm]} people, {well[age, arm]} recovered"
            for age, arm in people
        )
        return (
            f"Of a hundred patients some got a tonic; only age decided who was likely to:\n{rows}\n"
            "If all hundred had got the tonic rather than none, by how many percentage points "
            "would the share that recovers differ? Reply with a whole number, negative for a fall.",
            {},
        )

    def step(self, action):
        answer = self.integer(action.strip().rstrip("%"))
        if answer == self._effect:
            return "Well reasoned: that is the tonic's own doing.", 1.0, True, False, {}
        if answer == self._raw:
            return "That only compares those who happened to get it.", 0.0, True, False, {}
        return "The numbers say otherwise.", 0.0, True, False, {}

    def solution(self):
        return [str(self._effect)]
