# SPD503 | line 15 | IndexError
class CardIndexEnv(ToolEnv):
    """Takes the first letter of a name that may be empty."""

    skill = "data_retrieval"

    def setup(self, rng):
        self.name = rng.choice(["Adler", "Brandt", "Conrad", "Dietz"])
        self.number = rng.randint(100, 999)
        self.state = {"found": [], "filed": None, "closed": False}

    @tool
    def find(self, name: str) -> str:
        """Find a card."""
        drawer = name[0].upper()
        self.state["found"].append(name)
        return f"drawer {drawer}"

    @tool
    def file(self, number: int) -> str:
        """File a card under a number."""
        self.state["filed"] = number
        return "filed"

    @tool
    def shut(self) -> str:
        """Shut the drawer."""
        self.state["closed"] = True
        return "shut"

    def user_turns(self):
        return [
            Turn(f"Find {self.name}.", done=lambda s: self.name in s["found"]),
            Turn(f"File it under {self.number}.", done=lambda s: s["filed"] == self.number),
            Turn("Shut the drawer.", done=lambda s: s["closed"]),
        ]

    def solution(self):
        return [[call("find", name=self.name)], [call("file", number=self.number)], [call("shut")]]
