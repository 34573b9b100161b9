# SPD305 | any | UTF-8
import random


class SmileyEnv(TextEnv):
    """Cuts a character in half."""

    skill = "pattern_recognition"
    max_turns = 2

    def reset(self, seed=None):
        self.number = random.Random(seed).randint(100, 999)
        return f"Say {self.number} backwards.", {}

    def step(self, action):
        good = action.strip() == str(self.number)[::-1]
        return ("Fine!" if good else "Oh \ud83d"), 1.0 if good else 0.0, True, False, {}
