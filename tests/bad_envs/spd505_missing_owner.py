# SPD505 | line 35 | TypeError
class KennelBookEnv(ToolEnv):
    """A criterion that reads a field of nothing."""

    skill = "state_modification"

    def setup(self, rng):
        self.cage = rng.randint(100, 999)
        self.name = rng.choice(["Noor", "Pia", "Quentin"])
        self.state = {"seen": [], "owner": None, "fed": False}

    @tool
    def look(self, cage: int) -> str:
        """Look into a cage."""
        self.state["seen"].append(cage)
        return "a dog"

    @tool
    def assign(self, name: str) -> str:
        """Write down the owner."""
        self.state["owner"] = {"name": name}
        return "written"

    @tool
    def feed(self) -> str:
        """Feed them all."""
        self.state["fed"] = True
        return "fed"

    def user_turns(self):
        return [
            Turn(f"Look into cage {self.cage}.", done=lambda s: self.cage in s["seen"]),
            Turn(
                f"It belongs to {self.name}.",
                done=lambda s: s["owner"]["name"] == self.name,
            ),
            Turn("Feed them.", done=lambda s: s["fed"]),
        ]

    def solution(self):
        return [[call("look", cage=self.cage)], [call("assign", name=self.name)], [call("feed")]]
