GENERA = ["Carex", "Salix", "Viola", "Rosa"]
FINDERS = ["Lindqvist", "Moreau", "Tanaka"]
PAGE = 5


class HerbariumSearchEnv(ToolEnv):
    """Find pressed plants in a herbarium's paged catalogue and lay them on the table."""

    skill = "data_retrieval"
    max_turns = 20

    def setup(self, rng):
        numbers = rng.sample(range(1000, 10000), 24)
        heights, years = rng.sample(range(20, 2900), 24), rng.sample(range(1870, 1960), 24)
        self._sheets = {
            f"H{number}": {
                "genus": rng.choice(GENERA),
                "finder": rng.choice(FINDERS),
                "year": year,
                "height_m": height,
            }
            for number, height, year in zip(numbers, heights, years, strict=True)
        }
        self._genus = rng.choice([g for g in GENERA if len(self._select(genus=g)) > 4])
        self._highest = max(self._select(genus=self._genus), key=self._of("height_m"))
        self._finder = self._sheets[self._highest]["finder"]
        others = [s for s in self._select(finder=self._finder) if s != self._highest]
        self._oldest = min(others, key=self._of("year"))
        self.state = {"table": [], "label": None}

    def _of(self, field):
        return lambda sheet: self._sheets[sheet][field]

    def _select(self, **wanted):
        return [
            sheet
            for sheet, row in self._sheets.items()
            if all(value in ("any", row[field]) for field, value in wanted.items())
        ]

    @tool
    def search(
        self,
        genus: Literal["any", "Carex", "Salix", "Viola", "Rosa"] = "any",
        finder: Literal["any", "Lindqvist", "Moreau", "Tanaka"] = "any",
        page: int = 1,
    ) -> dict:
        """Search the catalogue; gives at most five sheets, and the number of the next page.

        genus: only plants of this genus
        finder: only plants that this person found
        page: which page of the result
        """
        found = self._select(genus=genus, finder=finder)
        shown = found[PAGE * (page - 1) : PAGE * page] if page > 0 else []
        more = 0 < PAGE * page < len(found)
        sheets = {sheet: self._sheets[sheet] for sheet in shown}
        return {"sheets": sheets, "next_page": page + 1 if more else None}

    @tool
    def lay_out(self, sheet: str) -> str:
        """Lay a sheet on the reading table."""
        if sheet not in self._sheets:
            return "Error: no such sheet."
        if sheet not in self.state["table"]:
            self.state["table"].append(sheet)
        return "On the table: " + ", ".join(self.state["table"])

    @tool
    def clear_table(self) -> str:
        """Put all sheets back."""
        self.state["table"].clear()
        return "The table is empty."

    @tool
    def write_label(self, year: int, height_m: int) -> str:
        """Write the label of the display case."""
        self.state["label"] = [year, height_m]
        return f"Label: {year}, {height_m} m."

    def user_turns(self):
        row = self._sheets[self._highest]
        both = [self._highest, self._oldest]
        return [
            Turn(
                f"Lay out the {self._genus} that was found highest up, and nothing else.",
                done=lambda state: state["table"] == [self._highest],
            ),
            Turn(
                "Write its year and height on the label.",
                done=lambda state: state["label"] == [row["year"], row["height_m"]],
            ),
            Turn(
                "Put beside it the oldest of the other plants, of any genus, by the same finder.",
                done=lambda state: state["table"] == both,
            ),
            Turn("Thanks; clear the table.", done=lambda state: not state["table"]),
        ]

    def solution(self):
        def browse(**wanted):
            later = range(2, -(-len(self._select(**wanted)) // PAGE) + 1)
            return [call("search", **wanted), *(call("search", **wanted, page=p) for p in later)]

        row = self._sheets[self._highest]
        return [
            [*browse(genus=self._genus), call("lay_out", sheet=self._highest)],
            [call("write_label", year=row["year"], height_m=row["height_m"])],
            [*browse(finder=self._finder), call("lay_out", sheet=self._oldest)],
            [call("clear_table")],
        ]
