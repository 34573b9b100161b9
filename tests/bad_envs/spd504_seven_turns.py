# SPD504 | any | 7
class ErrandEnv(ToolEnv):
    """A user who never stops."""

    skill = "multi_step_workflows"

    def setup(self, rng):
        self.shop = rng.randint(100, 999)
        self.state = {"been": []}

    @tool
    def visit(self, shop: int) -> str:
        """Go to a shop."""
        self.state["been"].append(shop)
        return "back"

    def user_turns(self):
        return [
            Turn(f"Go to shop {self.shop + i}.", done=lambda s, i=i: self.shop + i in s["been"])
            for i in range(7)
        ]

    def solution(self):
        return [[call("visit", shop=self.shop + i)] for i in range(7)]
