# SPD706 | any | could only guess
class TransferEnv(ToolEnv):
    """The account number is known to the solution alone."""

    skill = "api_orchestration"

    def setup(self, rng):
        self.account = f"IB{rng.randint(100000, 999999)}"
        self.amount = rng.randint(100, 999)
        self.state = {"opened": False, "paid": None, "closed": False}

    @tool
    def open_account(self, account: str) -> str:
        """Open an account."""
        self.state["opened"] = account == self.account
        return "open" if self.state["opened"] else "Error: unknown account."

    @tool
    def pay(self, amount: int) -> str:
        """Pay from the open account."""
        if not self.state["opened"]:
            return "Error: no account is open."
        self.state["paid"] = amount
        return "paid"

    @tool
    def close_account(self) -> str:
        """Close the account."""
        self.state["closed"] = self.state["paid"] is not None
        return "closed" if self.state["closed"] else "Error: nothing was paid."

    def user_turns(self):
        return [
            Turn("Open my account.", done=lambda s: s["opened"]),
            Turn(f"Pay {self.amount}.", done=lambda s: s["paid"] == self.amount),
            Turn("Close it.", done=lambda s: s["closed"]),
        ]

    def solution(self):
        return [
            [call("open_account", account=self.account)],
            [call("pay", amount=self.amount)],
            [call("close_account")],
        ]
