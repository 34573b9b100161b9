# SPD405 | any | other episodes
import random


class KeptTaskEnv(TextEnv):
    """The first task that was made serves all that follow."""

    skill = "mathematical_reasoning"
    max_turns = 1
    task = None

    def reset(self, seed=None):
        if KeptTaskEnv.task is None:
            KeptTaskEnv.task = random.Random(seed).randint(100, 999)
        return f"{KeptTaskEnv.task} times thirteen?", {}

    def step(self, action):
        good = action.strip() == str(13 * KeptTaskEnv.task)
        return "Seen.", 1.0 if good else 0.0, True, False, {}
