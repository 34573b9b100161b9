BASINS = "ABCDE"


class CanalBasinsEnv(TextEnv):
    """Pour water, dam basins, and find out which basins are joined by hidden channels."""

    skill = "causal_inference"
    max_turns = 16

    def reset(self, seed=None):
        rng = random.Random(seed)
        height = rng.sample(BASINS, len(BASINS))
        downhill = [a + b for a, b in itertools.combinations(height, 2)]
        self._channels = set(rng.sample(downhill, rng.choice([4, 5])))
        self.turn = 0
        clue = rng.choice(BASINS)
        return (
            f"Five basins, A to E, are joined by {len(self._channels)} buried one-way channels. "
            "'pour A' fills A and all that water reaches from there; 'pour A dam C D' does so "
            "while C and D are kept dry. Then the basins are emptied. Once you know every channel, "
            "report them: 'channels AB BD' means that A feeds B directly, and B feeds D.\n"
            f"Yesterday rain fell on {clue}, and water stood in {' '.join(self._flow(clue))}.",
            {},
        )

    def _flow(self, source, dams=""):
        wet, front = {source}, [source]
        while front:
            here = front.pop()
            for basin in BASINS:
                if here + basin in self._channels and basin not in wet and basin not in dams:
                    wet.add(basin)
                    front.append(basin)
        return sorted(wet)

    def step(self, action):
        self.turn += 1
        out_of_time = self.turn >= self.max_turns
        text = " ".join(action.upper().split())
        if pour := re.fullmatch("POUR ([A-E])(?: DAM((?: [A-E])+))?", text):
            wet = " ".join(self._flow(pour[1], pour[2] or ""))
            return f"Water stands in {wet}.", 0.0, False, out_of_time, {}
        if re.fullmatch("CHANNELS(?: [A-E][A-E])+", text):
            named = set(text.split()[1:])
            if named == self._channels:
                return "The old map agrees with yours!", 1.0, True, False, {}
            share = len(named & self._channels) / len(named | self._channels)
            return "Your map differs from the old one.", round(share / 2, 3), True, False, {}
        return "Say 'pour A', 'pour A dam C' or 'channels AB CD'.", 0.0, False, out_of_time, {}

    def solution(self):
        below = {basin: set(self._flow(basin)) - {basin} for basin in BASINS}
        plan = [f"pour {basin}" for basin in BASINS]
        for source, target in itertools.permutations(BASINS, 2):
            between = [basin for basin in sorted(below[source]) if target in below[basin]]
            if between and target in below[source]:  # reached in a roundabout way; directly too?
                plan.append(f"pour {source} dam {' '.join(between)}")
        return [*plan, "channels " + " ".join(sorted(self._channels))]
