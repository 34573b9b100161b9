# SPD503 | any | object
class LampPostEnv(ToolEnv):
    """A tool that gives back something that is no text and no JSON."""

    skill = "state_modification"

    def setup(self, rng):
        self.lamp = rng.randint(100, 999)
        self.state = {"lit": []}

    @tool
    def light(self, lamp: int) -> str:
        """Light a lamp."""
        self.state["lit"].append(lamp)
        return object()

    def user_turns(self):
        return [
            Turn(f"Light lamp {self.lamp + i}.", done=lambda s, i=i: self.lamp + i in s["lit"])
            for i in range(3)
        ]

    def solution(self):
        return [[call("light", lamp=self.lamp + i)] for i in range(3)]
