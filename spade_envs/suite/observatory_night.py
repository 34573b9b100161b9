class ObservatoryNightEnv(ToolEnv):
    """Photograph three objects although dome, camera and mount refuse in turn."""

    skill = "error_recovery"
    max_turns = 18

    def setup(self, rng):
        names = ["Vega", "Mizar", "Algol", "Deneb", "Rigel", "Spica", "Castor", "Hamal"]
        self._targets = rng.sample(names, 3)
        self._code = f"WX-{rng.randint(1000, 9999)}"
        self._cold = -5 * rng.randint(4, 9)
        self._side = rng.choice(["east", "west"])
        self.state = {"dome": "locked", "sensor": 15, "side": "none", "target": "", "plates": []}

    @tool
    def open_dome(self, code: str = "") -> str:
        """Open the dome.

        code: the weather code, where the dome asks for it
        """
        if self.state["dome"] == "locked" and code != self._code:
            return f"Error: wind lock engaged; repeat with weather code {self._code}."
        self.state["dome"] = "open"
        return "The dome is open."

    @tool
    def set_sensor(self, celsius: int) -> str:
        """Cool or warm the camera's sensor."""
        if not -60 <= celsius <= 25:
            return "Error: the cooler works from -60 to 25."
        self.state["sensor"] = celsius
        return f"The sensor is at {celsius}."

    @tool
    def flip_mount(self, side: Literal["east", "west"]) -> str:
        """Swing the telescope to one side of its pier; it then points nowhere."""
        self.state.update(side=side, target="")
        return f"The telescope hangs on the {side} side."

    @tool
    def point(self, target: str) -> str:
        """Point the telescope at a target."""
        if target not in self._targets:
            return "Error: not in tonight's catalogue."
        if target == self._targets[2] and self.state["side"] != self._side:
            return f"Error: the pier is in the way; flip the mount to the {self._side} side."
        self.state["target"] = target
        return f"Pointing at {target}."

    @tool
    def expose(self, seconds: int) -> str:
        """Take a photograph of what the telescope points at."""
        if self.state["dome"] != "open":
            return "Error: the dome is closed."
        if not self.state["target"] or not 1 <= seconds <= 600:
            return "Error: point at a target first; exposures last 1 to 600 seconds."
        if self.state["target"] != self._targets[0] and self.state["sensor"] > self._cold:
            return f"Error: too much noise; the sensor must be at {self._cold} or colder."
        self.state["plates"].append([self.state["target"], seconds])
        return f"Plate {len(self.state['plates'])}: {self.state['target']}, {seconds} s."

    def user_turns(self):
        bright, faint, low = self._targets

        def taken(target, seconds):
            return lambda state: [target, seconds] in state["plates"]

        return [
            Turn(f"Photograph {bright} for 5 seconds, please.", done=taken(bright, 5)),
            Turn(f"Now the faint one, {faint}, for 240 seconds.", done=taken(faint, 240)),
            Turn(f"And {low} for 60 seconds before it sets.", done=taken(low, 60)),
            Turn("Rain! Warm the sensor to 10.", done=lambda state: state["sensor"] == 10),
        ]

    def solution(self):
        bright, faint, low = self._targets
        return [
            [
                call("open_dome"),
                call("open_dome", code=self._code),
                call("point", target=bright),
                call("expose", seconds=5),
            ],
            [
                call("point", target=faint),
                call("expose", seconds=240),
                call("set_sensor", celsius=self._cold),
                call("expose", seconds=240),
            ],
            [
                call("point", target=low),
                call("flip_mount", side=self._side),
                call("point", target=low),
                call("expose", seconds=60),
            ],
            [call("set_sensor", celsius=10)],
        ]
