# SPD501 | any | default
class CoatRackEnv(ToolEnv):
    """A default that is not of the argument's type."""

    skill = "state_modification"

    def setup(self, rng):
        self.coat = rng.randint(100, 999)
        self.state = {"hung": []}

    @tool
    def hang(self, coat: int, hook: int = "first") -> str:
        """Hang up a coat."""
        self.state["hung"].append(coat)
        return "hung"

    def user_turns(self):
        return [
            Turn(f"Hang coat {self.coat + i}.", done=lambda s, i=i: self.coat + i in s["hung"])
            for i in range(3)
        ]

    def solution(self):
        return [[call("hang", coat=self.coat + i)] for i in range(3)]
