from collections import deque

SIZE = 4
MOVES = {"north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}


def roll(place, move):
    """Tip the die over one edge; `place` is (row, column, top, north, east)."""
    row, column, top, north, east = place
    row, column = row + MOVES[move][0], column + MOVES[move][1]
    if not (0 <= row < SIZE and 0 <= column < SIZE):
        return None
    return {
        "north": (row, column, 7 - north, top, east),
        "south": (row, column, north, 7 - top, east),
        "east": (row, column, 7 - east, north, top),
        "west": (row, column, east, north, 7 - top),
    }[move]


class RollingDieEnv(TextEnv):
    """Roll a die over a board so that it lands on the star with the right face up."""

    skill = "spatial_reasoning"
    max_turns = 16

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.seen_star = False
        self._path = []
        while not 5 <= len(self._path) <= 10:
            self.die = (rng.randrange(SIZE), rng.randrange(SIZE), 1, 2, 3)
            self.star = (rng.randrange(SIZE), rng.randrange(SIZE), rng.randint(1, 6))
            self._path = self._search()
        row, column, face = self.star
        return (
            f"A die stands on a {SIZE}x{SIZE} board; opposite faces add up to 7. Roll it over its "
            f"edges to the star at row {row}, column {column} so that {face} is on top there. Say "
            f"north (towards row 0), south, east or west (towards column 0).\n{self._view()}",
            {},
        )

    def _view(self):
        row, column, top, north, east = self.die
        return f"Row {row}, column {column}: top {top}, north side {north}, east side {east}."

    def _search(self):
        queue, paths = deque([self.die]), {self.die: []}
        while queue:
            place = queue.popleft()
            if place[:3] == self.star:
                return paths[place]
            for move in MOVES:
                new = roll(place, move)
                if new and new not in paths:
                    paths[new] = [*paths[place], move]
                    queue.append(new)
        return []

    def step(self, action):
        self.turn += 1
        out_of_time = self.turn >= self.max_turns
        move = action.strip().lower()
        rolled = roll(self.die, move) if move in MOVES else None
        if rolled is None:
            return "The die stays. " + self._view(), 0.0, False, out_of_time, {}
        self.die = rolled
        if self.die[:3] == self.star:
            return "The die shows the right face on the star!", 1.0, True, False, {}
        reward = 0.0
        if self.die[:2] == self.star[:2] and not self.seen_star:
            self.seen_star, reward = True, 0.2
        return self._view(), reward, False, out_of_time, {}

    def solution(self):
        return list(self._path)
