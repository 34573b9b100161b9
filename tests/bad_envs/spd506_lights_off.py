# SPD506 | any | turn 1
class NightRoundEnv(ToolEnv):
    """The first wish is fulfilled before anybody acts."""

    skill = "state_modification"

    def setup(self, rng):
        self.door = rng.randint(100, 999)
        self.state = {"light": "off", "locked": [], "signed": False}

    @tool
    def light(self, value: Literal["on", "off"]) -> str:
        """Switch the light."""
        self.state["light"] = value
        return value

    @tool
    def lock(self, door: int) -> str:
        """Lock a door."""
        self.state["locked"].append(door)
        return "locked"

    @tool
    def sign(self) -> str:
        """Sign the book."""
        self.state["signed"] = True
        return "signed"

    def user_turns(self):
        return [
            Turn("Make sure the light is off.", done=lambda s: s["light"] == "off"),
            Turn(f"Lock door {self.door}.", done=lambda s: self.door in s["locked"]),
            Turn("Sign the book.", done=lambda s: s["signed"]),
        ]

    def solution(self):
        return [[call("light", value="off")], [call("lock", door=self.door)], [call("sign")]]
