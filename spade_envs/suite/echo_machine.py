def shift(word):
    return "".join(chr((ord(letter) - ord("a") + 1) % 26 + ord("a")) for letter in word)


def swap_pairs(word):
    return "".join(word[i : i + 2][::-1] for i in range(0, len(word), 2))


PARTS = [
    lambda word: word[::-1],
    lambda word: word[2:] + word[:2],
    lambda word: "".join(letter * 2 if letter in "aeiou" else letter for letter in word),
    lambda word: word[0] + word + word[-1],
    shift,
    swap_pairs,
]


class EchoMachineEnv(TextEnv):
    """Feed words to a machine, find its two hidden parts, and foretell its next word."""

    skill = "pattern_recognition"
    max_turns = 7

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self._parts = rng.sample(PARTS, 2)
        self.word = "".join(rng.choice("bcdfghlmnprst") + rng.choice("aeiou") for _ in range(3))
        self._echo = self._run(self.word)
        return (
            "A machine changes words with two parts, one after the other. Each part moves, doubles "
            "or exchanges letters, always in the same way. 'feed WORD' shows what comes out for a "
            "word of 1 to 10 letters. At the end, 'foretell WORD' with what the machine makes of "
            f"{self.word!r}; that word can't be fed, and you foretell once.",
            {},
        )

    def _run(self, word):
        for part in self._parts:
            word = part(word)
        return word

    def step(self, action):
        self.turn += 1
        out_of_time = self.turn >= self.max_turns
        verb, _, word = action.strip().lower().partition(" ")
        if verb == "foretell":
            if word.strip() == self._echo:
                return f"The machine prints {self._echo}. Foretold!", 1.0, True, False, {}
            return "The machine prints something else.", 0.0, True, False, {}
        if verb == "feed" and re.fullmatch("[a-z]{1,10}", word) and word != self.word:
            return f"{word} becomes {self._run(word)}.", 0.0, False, out_of_time, {}
        return "Use 'feed WORD' or 'foretell WORD'.", 0.0, False, out_of_time, {}

    def solution(self):
        return ["feed abcdefg", "feed stone", f"foretell {self._echo}"]
