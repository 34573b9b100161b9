# SPD702 | any | first observation
import random

NAMES = "amber basil cedar delta ember fjord grove haven islet jetty knoll larch maple north".split()


class PasswordEnv(TextEnv):
    """The password always stands at the same place of the story."""

    skill = "language_understanding"
    max_turns = 2

    def reset(self, seed=None):
        rng = random.Random(seed)
        words = rng.sample(NAMES, 9)
        self.word, self.turn = words[4], 0
        return f"The guard mutters {' '.join(words)}. He waits for a password.", {}

    def step(self, action):
        self.turn += 1
        good = action.strip() == self.word
        return "Hm.", 1.0 if good else 0.0, good, self.turn >= 2, {}

    def solution(self):
        return [self.word]
