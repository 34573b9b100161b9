# SPD501 | any | items
class SpiceRackEnv(ToolEnv):
    """A list of nobody knows what."""

    skill = "state_modification"

    def setup(self, rng):
        self.jar = rng.randint(100, 999)
        self.state = {"put": []}

    @tool
    def put(self, jars: list) -> str:
        """Put jars away."""
        self.state["put"] += jars
        return "put"

    def user_turns(self):
        return [
            Turn(f"Put jar {self.jar + i}.", done=lambda s, i=i: self.jar + i in s["put"])
            for i in range(3)
        ]

    def solution(self):
        return [[call("put", jars=[self.jar + i])] for i in range(3)]
