# SPD502 | any | basket
class EggRoundEnv(ToolEnv):
    """A docstring that speaks of an argument from long ago."""

    skill = "state_modification"

    def setup(self, rng):
        self.nest = rng.randint(100, 999)
        self.state = {"taken": []}

    @tool
    def take(self, nest: int) -> str:
        """Take the eggs of a nest.

        nest: number of the nest
        basket: where they go
        """
        self.state["taken"].append(nest)
        return "taken"

    def user_turns(self):
        return [
            Turn(f"Take from nest {self.nest + i}.", done=lambda s, i=i: self.nest + i in s["taken"])
            for i in range(3)
        ]

    def solution(self):
        return [[call("take", nest=self.nest + i)] for i in range(3)]
