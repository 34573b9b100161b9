class InstrumentLoansEnv(ToolEnv):
    """Lend, take back and repair the instruments of a youth orchestra."""

    skill = "state_modification"
    max_turns = 16

    def setup(self, rng):
        self._ada, self._ben, self._cleo = rng.sample(
            ["Ada Brandt", "Ben Okoro", "Cleo Rossi", "Dev Patel", "Eva Lind", "Femi Cole"], 3
        )
        self._kind, self._other = rng.sample(["viola", "cello", "oboe", "horn"], 2)
        tags = [f"{rng.choice('KLMNPR')}{number}" for number in rng.sample(range(100, 1000), 5)]
        self._free, self._held, self._spare, self._worn, self._lent = tags
        rows = [
            (self._free, self._kind, None, "good"),
            (self._worn, self._kind, None, "cracked"),
            (self._held, self._other, self._ben, "good"),
            (self._spare, self._other, None, "good"),
            (self._lent, self._other, self._cleo, "good"),
        ]
        rng.shuffle(rows)
        self.state = {
            tag: {"kind": kind, "holder": holder, "condition": condition}
            for tag, kind, holder, condition in rows
        }

    @tool
    def cupboard(self, kind: Literal["viola", "cello", "oboe", "horn"]) -> dict:
        """All instruments of one kind by tag, with holder and condition."""
        return {tag: row for tag, row in self.state.items() if row["kind"] == kind}

    @tool
    def lend(self, tag: str, player: str) -> str:
        """Lend a free instrument in good condition to a player.

        tag: the instrument's tag
        player: full name
        """
        row = self.state.get(tag)
        if row is None or row["holder"] or row["condition"] != "good" or not player:
            return "Error: only a free instrument in good condition can be lent."
        row["holder"] = player
        return f"{player} signs for {tag}."

    @tool
    def take_back(self, tag: str) -> str:
        """Take an instrument back from whoever holds it."""
        row = self.state.get(tag)
        if row is None or not row["holder"]:
            return "Error: nobody holds such an instrument."
        player, row["holder"] = row["holder"], None
        return f"{player} returns {tag}."

    @tool
    def set_condition(self, tag: str, condition: Literal["good", "cracked", "away"]) -> str:
        """Write down an instrument's condition."""
        if tag not in self.state:
            return "Error: no such tag."
        self.state[tag]["condition"] = condition
        return f"{tag}: {condition}."

    def user_turns(self):
        ada, ben, cleo, kind, other = self._ada, self._ben, self._cleo, self._kind, self._other

        def holds(player, tag):
            return lambda state: state[tag]["holder"] == player

        def noted(condition, *tags):
            return lambda state: all(state[tag]["condition"] == condition for tag in tags)

        return [
            Turn(f"Lend {ada} a sound {kind}, please.", done=holds(ada, self._free)),
            Turn(f"{ben} dropped the {other}. Take it back.", done=holds(None, self._held)),
            Turn("It has a crack: write that down.", done=noted("cracked", self._held)),
            Turn(
                f"Lend {ben} another {other}, but leave {cleo} the one lent already.",
                done=holds(ben, self._spare),
            ),
            Turn(
                f"The luthier takes every cracked {kind} and {other}: note them as away.",
                done=noted("away", self._held, self._worn),
            ),
        ]

    def solution(self):
        return [
            [call("cupboard", kind=self._kind), call("lend", tag=self._free, player=self._ada)],
            [call("cupboard", kind=self._other), call("take_back", tag=self._held)],
            [call("set_condition", tag=self._held, condition="cracked")],
            [call("lend", tag=self._spare, player=self._ben)],
            [
                call("set_condition", tag=self._held, condition="away"),
                call("set_condition", tag=self._worn, condition="away"),
            ],
        ]
