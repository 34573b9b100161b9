class KiteFestivalEnv(ToolEnv):
    """Plan a kite flight by chaining a map, a weather and a permit service."""

    skill = "api_orchestration"
    max_turns = 16

    def setup(self, rng):
        names = rng.sample(
            ["Mossy Hill", "Long Beach", "Crow Field", "Old Quarry", "Salt Flats"], 3
        )
        self._hill, self._beach, _ = names
        self._places = {name: f"loc-{rng.randrange(16**4):04x}" for name in names}
        self._wind = {
            place: dict(zip((10, 13, 16), rng.sample(range(9, 60), 3), strict=True))
            for place in self._places.values()
        }
        self._serial = rng.randint(200, 800)
        self._pilots = rng.randint(3, 9)
        self.state = {"forecasts": {}, "permits": {}, "vans": {}}

    @tool
    def find_place(self, name: str) -> dict:
        """Look a place up on the map; gives its id."""
        return {"id": self._places[name]} if name in self._places else {"error": "not on the map"}

    @tool
    def forecast(self, place_id: str, hour: Literal[10, 13, 16]) -> dict:
        """Order a wind forecast; gives the wind in km/h and the forecast's number."""
        if place_id not in self._wind:
            return {"error": "unknown place id"}
        number = f"F{self._serial + len(self.state['forecasts'])}"
        self.state["forecasts"][number] = [place_id, hour]
        return {"forecast": number, "wind_kmh": self._wind[place_id][hour]}

    @tool
    def request_permit(self, forecast: str) -> dict:
        """Ask for a permit to fly at the place and hour of a forecast."""
        if forecast not in self.state["forecasts"]:
            return {"error": "no such forecast; order one first"}
        number = f"P{self._serial + 7 * len(self.state['permits'])}"
        self.state["permits"][number] = [*self.state["forecasts"][forecast], "valid"]
        return {"permit": number}

    @tool
    def cancel_permit(self, permit: str) -> dict:
        """Give a permit back."""
        if permit not in self.state["permits"]:
            return {"error": "no such permit"}
        self.state["permits"][permit][2] = "cancelled"
        return {"permit": permit, "status": "cancelled"}

    @tool
    def book_van(self, permit: str, seats: int) -> dict:
        """Book a van to the place of a valid permit."""
        if self.state["permits"].get(permit, ["", 0, ""])[2] != "valid" or not 1 <= seats <= 12:
            return {"error": "a van needs a valid permit and 1 to 12 seats"}
        self.state["vans"][permit] = seats
        return {"permit": permit, "seats": seats}

    def user_turns(self):
        hill, beach = self._places[self._hill], self._places[self._beach]
        windy = max((10, 16), key=self._wind[beach].get)

        def permitted(place, hour, status="valid"):
            return lambda state: [place, hour, status] in state["permits"].values()

        def van(state):
            return any(
                state["permits"][permit] == [beach, windy, "valid"] and seats == self._pilots
                for permit, seats in state["vans"].items()
            )

        return [
            Turn(f"Get us a permit for {self._hill} at 13 h.", done=permitted(hill, 13)),
            Turn(
                f"And one for {self._beach}, at 10 or at 16 h: the hour with more wind.",
                done=permitted(beach, windy),
            ),
            Turn(
                f"{self._hill} is flooded. Give that permit back.",
                done=permitted(hill, 13, "cancelled"),
            ),
            Turn(f"Book a van for {self._pilots} to the flight that is left.", done=van),
        ]

    def solution(self):
        hill, beach = self._places[self._hill], self._places[self._beach]
        windy = max((10, 16), key=self._wind[beach].get)
        first = self._serial
        return [
            [
                call("find_place", name=self._hill),
                call("forecast", place_id=hill, hour=13),
                call("request_permit", forecast=f"F{first}"),
            ],
            [
                call("find_place", name=self._beach),
                call("forecast", place_id=beach, hour=10),
                call("forecast", place_id=beach, hour=16),
                call("request_permit", forecast=f"F{first + (1 if windy == 10 else 2)}"),
            ],
            [call("cancel_permit", permit=f"P{first}")],
            [call("book_van", permit=f"P{first + 7}", seats=self._pilots)],
        ]
