# SPD503 | line 21 | ValueError
class GuestRoomEnv(ToolEnv):
    """A tool that works once and raises the second time."""

    skill = "state_modification"

    def setup(self, rng):
        self.rooms = [rng.randint(100, 999) for _ in range(3)]
        self.state = {"free": list(self.rooms), "taken": [], "cleaned": False}

    @tool
    def list_free(self) -> list[int]:
        """Free rooms."""
        return self.state["free"]

    @tool
    def take(self, room: int) -> str:
        """Take a free room."""
        if room not in self.rooms:
            return "Error: no such room."
        self.state["free"].remove(room)
        self.state["taken"].append(room)
        return "taken"

    @tool
    def clean(self) -> str:
        """Clean the house."""
        self.state["cleaned"] = True
        return "clean"

    def user_turns(self):
        first, second, _ = self.rooms
        return [
            Turn(f"Take room {first}.", done=lambda s: first in s["taken"]),
            Turn(f"And {second} as well.", done=lambda s: second in s["taken"]),
            Turn("Clean the house.", done=lambda s: s["cleaned"]),
        ]

    def solution(self):
        first, second, _ = self.rooms
        return [[call("take", room=first)], [call("take", room=second)], [call("clean")]]
