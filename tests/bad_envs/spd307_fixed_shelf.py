# SPD307 | any | one task
class FixedShelfEnv(ToolEnv):
    """Tool use whose tasks are all the same."""

    skill = "state_modification"

    def setup(self, rng):
        self.state = {"put": []}

    @tool
    def put(self, box: int) -> str:
        """Put a box on the shelf."""
        self.state["put"].append(box)
        return f"box {box} put"

    def user_turns(self):
        return [Turn(f"Put box {n}.", done=lambda s, n=n: n in s["put"]) for n in (417, 288, 935)]

    def solution(self):
        return [[call("put", box=n)] for n in (417, 288, 935)]
