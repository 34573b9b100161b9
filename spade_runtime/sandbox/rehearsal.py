"""Environments of our own that the zygote plays, so that its children begin with what that leaves.

The interpreter fits code to its use when it has run a few times, and libraries fill their caches.
A child that did so would copy each page that it changes; done before the fork, all share the
result. What is left for children to make is made here too, as far as it is the same for any source.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from spade_runtime.sandbox import source, wire
from spade_runtime.sandbox.child import Child
from spade_runtime.sandbox.wire import Request, request_decoder

GAME = '''
from dataclasses import dataclass


@dataclass
class Place:
    """Where something is."""

    row: int
    column: int = 0


class SampleEnv(TextEnv):
    """Show the zygote what a game looks like."""

    skill = "spatial_reasoning"
    max_turns = 10

    def __init__(self):
        self.place = Place(0)

    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.place = Place(self.rng.randint(0, 9), random.randint(0, 9))
        self.left = [number * 2 for number in range(4) if number != self.place.row]
        return f"You are at {self.place.row}, {self.place.column}.", {}

    def step(self, action):
        words = action.lower().split()
        if "down" in words:
            self.place.row += 1
        elif not words:
            return "Say where to go.", -0.1, False, False, {"left": len(self.left)}
        done = self.place.row >= 10
        return f"You are at row {self.place.row:>3}.", float(done), done, False, {}

    def solution(self):
        return ["down"] * max(1, 10 - self.place.row)
'''
TOOLS = '''
class SampleEnv(ToolEnv):
    """Show the zygote what a tool-use environment looks like."""

    skill = "state_modification"

    def setup(self, rng):
        self.state = {"count": rng.randint(0, 9), "name": f"{rng.random():.2f}"}

    @tool
    def add(self, amount: int = 1) -> str:
        """Add.

        amount: how much
        """
        self.state["count"] += amount
        return str(self.state["count"])

    def user_turns(self):
        return [Turn(text, done=lambda state: state["count"] > 9) for text in ("a", "b", "c")]
'''
ROUNDS = 3
_BYTES = 65536
_encode = msgspec.msgpack.Encoder().encode


def rehearse(rounds: int = ROUNDS) -> None:
    """Play each sample with the policy on and off, and make rooms ready for what will be loaded."""
    for _ in range(rounds):
        for policy in (True, False):
            for text, play in ((GAME, _game), (TOOLS, _tools)):
                inspect = wire.Inspect(0, text, policy, _BYTES, _BYTES)
                Child(_Silent().write).answer(request_decoder.decode(_encode(inspect)))
                code = source.read(inspect).code
                load = wire.Load(
                    0,
                    code,
                    "",
                    policy,
                    "SampleEnv",
                    play is _tools,
                    "contract",
                    False,
                    _BYTES,
                    _BYTES,
                )
                child = Child(_Silent().write)
                for request in (load, *play()):
                    child.answer(request_decoder.decode(_encode(request)))
    source.ROOMS.make_ready()


class _Silent:
    """Takes what would go to the parent."""

    def write(self, data: bytes) -> None:
        """Take it."""


def _game() -> Iterator[Request]:
    slots = list(range(8))
    yield wire.Reset(0, slots, slots, True)
    for text in ("down", "Stay here", "", "down"):
        yield wire.Step(0, slots, [text] * 8)
        yield wire.Step(0, [0], [text])
    yield wire.Solution(0, [0])


def _tools() -> Iterator[Request]:
    yield wire.Reset(0, [0, 1], [0, 1], True)
    for amount in range(1, 4):
        yield wire.Tool(0, [0, 1], [("add", b'{"amount": %d}' % amount, 0)] * 2)
