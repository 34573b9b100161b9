# SPD507 | any | receipt
class ReceiptEnv(ToolEnv):
    """A receipt number made by hash()."""

    skill = "api_orchestration"

    def setup(self, rng):
        self.item = rng.choice(["nails", "planks", "hinges", "screws"])
        self.number = rng.randint(100, 999)
        self.state = {"bought": [], "booked": None, "told": False}

    @tool
    def buy(self, item: str) -> str:
        """Buy something."""
        self.state["bought"].append(item)
        return f"receipt {hash(item) % 10000}"

    @tool
    def book(self, number: int) -> str:
        """Book it under a number."""
        self.state["booked"] = number
        return "booked"

    @tool
    def tell(self) -> str:
        """Tell the office."""
        self.state["told"] = True
        return "told"

    def user_turns(self):
        return [
            Turn(f"Buy {self.item}.", done=lambda s: self.item in s["bought"]),
            Turn(f"Book it under {self.number}.", done=lambda s: s["booked"] == self.number),
            Turn("Tell the office.", done=lambda s: s["told"]),
        ]

    def solution(self):
        return [[call("buy", item=self.item)], [call("book", number=self.number)], [call("tell")]]
