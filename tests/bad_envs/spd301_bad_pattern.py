# SPD301 | line 5 | unterminated subpattern
import random
import re

WORD = re.compile("(unclosed")


class GlossaryEnv(TextEnv):
    """A pattern that does not compile."""

    skill = "language_understanding"

    def reset(self, seed=None):
        return f"Word {random.Random(seed).randint(100, 999)}?", {}

    def step(self, action):
        return "Read.", 0.0, True, False, {}
