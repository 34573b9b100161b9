# SPD303 | line 19 | KeyError
class CourierBagEnv(ToolEnv):
    """User turns that look up a parcel which is not always there."""

    skill = "data_retrieval"

    def setup(self, rng):
        self.parcels = {name: rng.randint(100, 999) for name in rng.sample(["red", "blue", "grey"], 2)}
        self.state = {"seen": []}

    @tool
    def weigh(self, parcel: str) -> str:
        """Weigh a parcel."""
        self.state["seen"].append(parcel)
        return str(self.parcels.get(parcel, "no such parcel"))

    def user_turns(self):
        return [
            Turn(f"Weigh the red one, {self.parcels['red']} g?", done=lambda s: "red" in s["seen"]),
            Turn("And the blue one.", done=lambda s: "blue" in s["seen"]),
            Turn("And the grey one.", done=lambda s: "grey" in s["seen"]),
        ]
