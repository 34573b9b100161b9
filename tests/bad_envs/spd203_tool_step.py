# SPD203 | line 23 | step
class PantryShelfEnv(ToolEnv):
    """A tool-use class that brings its own step."""

    skill = "state_modification"

    def setup(self, rng):
        self.jar = rng.randint(100, 999)
        self.state = {"put": []}

    @tool
    def put(self, jar: int) -> str:
        """Put a jar away."""
        self.state["put"].append(jar)
        return "put"

    def user_turns(self):
        return [
            Turn(f"Put jar {self.jar + i}.", done=lambda s, i=i: self.jar + i in s["put"])
            for i in range(3)
        ]

    def step(self, action):
        return "Mine.", 1.0, True, False, {}
