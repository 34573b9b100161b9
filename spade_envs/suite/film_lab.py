BATHS = ["developer", "stop", "fixer", "water"]


class FilmLabEnv(ToolEnv):
    """Develop two rolls of film: the right baths, in order, for the times of the chart."""

    skill = "multi_step_workflows"
    max_turns = 20

    def setup(self, rng):
        films = rng.sample(["Nocturne 400", "Meadow 100", "Harbour 200", "Alpine 50"], 2)
        self._degrees = rng.sample([18, 20, 22, 24], 2)
        self._chart = {}
        for film in films:
            times = [rng.randint(5, 15), 1, rng.randint(4, 9), rng.randint(10, 20)]
            for degrees in (18, 20, 22, 24):
                warmer = [max(1, times[0] - (degrees - 18) // 2), *times[1:]]
                self._chart[film, degrees] = dict(zip(BATHS, warmer, strict=True))
        self._films = films
        self.state = {
            tank: {"film": None, "degrees": 20, "baths": [], "dried": []}
            for tank in ("north", "south")
        }

    @tool
    def chart(self, film: str, degrees: Literal[18, 20, 22, 24]) -> dict:
        """Minutes in each bath for a film at a temperature; the baths stand in their order."""
        return self._chart.get((film, degrees), {"error": "this film is not on the chart"})

    @tool
    def load(self, tank: Literal["north", "south"], film: str) -> str:
        """Load a film into a tank, from the start; what was in it is taken out."""
        if (film, 20) not in self._chart:
            return "Error: there is no such film here."
        self.state[tank].update(film=film, baths=[])
        return f"{film} is in the {tank} tank."

    @tool
    def heat(self, tank: Literal["north", "south"], degrees: Literal[18, 20, 22, 24]) -> str:
        """Bring a tank to a temperature."""
        self.state[tank]["degrees"] = degrees
        return f"The {tank} tank is at {degrees} degrees."

    @tool
    def pour(
        self,
        tank: Literal["north", "south"],
        bath: Literal["developer", "stop", "fixer", "water"],
        minutes: int,
    ) -> str:
        """Pour a bath into a tank and leave it there for some minutes."""
        state = self.state[tank]
        if state["film"] is None or not 1 <= minutes <= 60:
            return "Error: load a film first; a bath lasts 1 to 60 minutes."
        state["baths"].append([bath, minutes, state["degrees"]])
        return f"Baths done: {len(state['baths'])}."

    @tool
    def dry(self, tank: Literal["north", "south"]) -> str:
        """Take a film out and hang it up to dry; only well-treated film survives."""
        state = self.state[tank]
        if not state["film"] or state["baths"] != self._baths(state["film"], state["degrees"]):
            return "Error: baths, order, times or temperature are not those of the chart."
        state["dried"].append([state["film"], state["degrees"]])
        state.update(film=None, baths=[])
        return "The film hangs on the line."

    def _baths(self, film, degrees):
        return [[bath, minutes, degrees] for bath, minutes in self._chart[film, degrees].items()]

    def user_turns(self):
        (first, second), (cool, warm) = self._films, self._degrees
        return [
            Turn(
                f"Load {first} into the north tank.",
                done=lambda state: state["north"]["film"] == first,
            ),
            Turn(
                f"Treat it at {cool} degrees and dry it.",
                done=lambda state: [first, cool] in state["north"]["dried"],
            ),
            Turn(
                f"Now {second} in the south tank, the whole way, at {warm} degrees.",
                done=lambda state: [second, warm] in state["south"]["dried"],
            ),
        ]

    def solution(self):
        (first, second), (cool, warm) = self._films, self._degrees

        def treat(tank, film, degrees):
            return [
                call("chart", film=film, degrees=degrees),
                call("heat", tank=tank, degrees=degrees),
                *(
                    call("pour", tank=tank, bath=bath, minutes=minutes)
                    for bath, minutes in self._chart[film, degrees].items()
                ),
                call("dry", tank=tank),
            ]

        return [
            [call("load", tank="north", film=first)],
            treat("north", first, cool),
            [call("load", tank="south", film=second), *treat("south", second, warm)],
        ]
