TOWNS = ["Arden", "Brill", "Corvo", "Delft", "Esk", "Fargo", "Gand"]


class MapRoomEnv(ToolEnv):
    """Answer travellers' questions with the one instrument of a map room that fits each."""

    skill = "tool_selection"
    max_turns = 12

    def setup(self, rng):
        self._towns = rng.sample(TOWNS, 4)
        self._tables = {"line": {}, "road": {}, "rail": {}, "climb": {}}
        for pair in map(frozenset, itertools.combinations(self._towns, 2)):
            line = rng.randint(20, 90)
            self._tables["line"][pair] = line
            self._tables["road"][pair] = line + rng.randint(5, 60)
            self._tables["rail"][pair] = rng.randint(151, 299)
            self._tables["climb"][pair] = 10 * rng.randint(31, 95)
        self.state = {"answers": {}}

    def _read(self, table, start, end):
        value = self._tables[table].get(frozenset([start, end]))
        return "Error: not on this map." if value is None else value

    @tool
    def road_km(self, start: str, end: str) -> int | str:
        """Length of the road between two towns."""
        return self._read("road", start, end)

    @tool
    def line_km(self, start: str, end: str) -> int | str:
        """Distance between two towns on the map, measured with a ruler."""
        return self._read("line", start, end)

    @tool
    def rail_minutes(self, start: str, end: str) -> int | str:
        """Minutes that the train takes between two towns."""
        return self._read("rail", start, end)

    @tool
    def road_climb_m(self, start: str, end: str) -> int | str:
        """Metres that the road between two towns climbs in all."""
        return self._read("climb", start, end)

    @tool
    def answer(self, traveller: Literal["pilot", "cyclist", "clerk", "carter"], value: int) -> str:
        """Give a traveller the number asked for; a second answer corrects the first."""
        self.state["answers"][traveller] = value
        return f"You tell the {traveller}: {value}."

    def _jobs(self):
        a, b, c, d = self._towns
        return [
            ("pilot", "line_km", "line", a, b, f"I fly from {a} to {b}. How many km is that?"),
            ("clerk", "rail_minutes", "rail", b, c, f"How long do I sit in the train, {b} to {c}?"),
            ("carter", "road_km", "road", c, d, f"My horses go from {c} to {d}. How far is it?"),
            ("cyclist", "road_climb_m", "climb", d, a, f"How hilly is the ride, {d} to {a}?"),
        ]

    def user_turns(self):
        def told(traveller, value):
            return lambda state: state["answers"].get(traveller) == value

        return [
            Turn(f"The {who} asks: {question}", done=told(who, self._read(table, start, end)))
            for who, _, table, start, end, question in self._jobs()
        ]

    def solution(self):
        return [
            [
                call(name, start=start, end=end),
                call("answer", traveller=who, value=self._read(table, start, end)),
            ]
            for who, name, table, start, end, _ in self._jobs()
        ]
