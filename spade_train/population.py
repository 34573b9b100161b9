"""Designed environments over their life: written, played for a window, paid, remembered."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from spade_runtime.spec import Kind
from spade_train.learners.base import TrainRow
from spade_train.memory import MemoryRecord
from spade_train.objectives import Outcome
from spade_train.rewards import Pairing, Regret, SeedReturn, hint_regret, win_rate
from spade_train.tokens import Conversation


@dataclass(slots=True)
class Design:
    """One try of the designer that counts: an environment, or an invalid try that is paid.

    Attributes:
        made: the step whose regeneration made it.
        slot: its place in the pool.
        skill: the skill that was asked for.
        kind: the kind that was asked for.
        sha256: of the source; empty for an invalid try without code.
        title: what it calls itself.
        source: its code.
        hint: one text for all seeds, None where none could be had.
        document: id of the corpus document in its prompt.
        parents: hashes of the exemplars in its prompt.
        sample: the tokens of the designer's reply, None where the designer can't be trained.
        hint_sample: those of the hint, where hints are trained.
        version: updates the weights had seen when it was written.
        valid: whether the validator accepted it.
        solved: of each unhinted play of the window, None for a void one.
        returns: of each unhinted play, None for a void one.
        unhinted: returns of the pool's first step by seed.
        hinted: returns with the hint, on the same seeds.
        faults: plays that a fault of the environment itself voided.
    """

    made: int
    slot: int
    skill: str
    kind: Kind
    sha256: str = ""
    title: str = ""
    source: str = ""
    hint: str | None = None
    document: str | None = None
    parents: tuple[str, ...] = ()
    sample: Conversation | None = None
    hint_sample: Conversation | None = None
    version: int = 0
    valid: bool = True
    solved: list[bool | None] = field(default_factory=list)
    returns: list[float | None] = field(default_factory=list)
    unhinted: list[SeedReturn] = field(default_factory=list)
    hinted: list[SeedReturn] = field(default_factory=list)
    faults: int = 0

    @property
    def name(self) -> str:
        """Unique in a run; two slots may hold the same source."""
        return f"{self.made:06d}-{self.slot:03d}"

    def regret(self, pairing: Pairing) -> Regret:
        """Return the hint regret of the pool's first step."""
        return hint_regret(self.hinted, self.unhinted, pairing=pairing)

    @property
    def win_rate(self) -> float | None:
        """Share of the window's unhinted plays that solved it."""
        return win_rate(self.solved)

    @property
    def excused(self) -> bool:
        """Whether a reward that is missing is missing for the host's failures alone.

        No fault of its own voided a play, and it was played with the hint that a regret needs.
        """
        return self.valid and not self.faults and (bool(self.hinted) or self.win_rate is None)

    def outcome(self, pairing: Pairing) -> Outcome:
        """Return what the window says; one that faulted in play can't be judged."""
        if self.faults:
            return Outcome(self.skill, None, None)
        returns = tuple(value for value in self.returns if value is not None)
        return Outcome(self.skill, self.regret(pairing).value, self.win_rate, returns)

    def record(self, pairing: Pairing) -> MemoryRecord | None:
        """Return what the memory keeps of it, None where no play counts.

        One that faulted in play is not kept: what is shown to a designer is to be sound.
        """
        rate = self.win_rate
        if not self.valid or self.faults or rate is None:
            return None
        regret = self.regret(pairing)
        return MemoryRecord(
            self.sha256, self.title, self.source, self.hint, self.kind, self.skill, rate,
            regret.value, regret.standard_error, self.made, self.parents,
        )  # fmt: skip

    def rows(self, advantage: float) -> list[TrainRow]:
        """Return its training rows: the design, and its hint where hints are trained."""
        pairs = [("design", self.sample), ("hint", self.hint_sample)]
        return [
            TrainRow.of(
                sample,
                role="designer",
                advantage=advantage,
                version=self.version,
                sample_id=f"{part}-{self.name}",
            )
            for part, sample in pairs
            if sample is not None
        ]

    def to_state(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        state = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        for key in ("sample", "hint_sample"):
            if (sample := state[key]) is not None:
                state[key] = {entry.name: getattr(sample, entry.name) for entry in fields(sample)}
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Design:
        """Build the design that `to_state` described."""
        values = dict(state)
        values["parents"] = tuple(values["parents"])
        for key in ("unhinted", "hinted"):
            values[key] = [SeedReturn(*pair) for pair in values[key]]
        for key in ("sample", "hint_sample"):
            values[key] = None if values[key] is None else _conversation(values[key])
        return cls(**values)


def _conversation(state: Mapping[str, Any]) -> Conversation:
    kept = state["kept"]
    if kept is not None:
        kept = [None if ids is None else tuple(ids) for ids in kept]
    return Conversation(state["ids"], state["mask"], state["logprobs"], kept)


def mean_and_error(values: Iterable[float | None]) -> tuple[float | None, float | None]:
    """Return the mean of what is known and its standard error, None where it can't be said.

    >>> mean_and_error([0.0, 1.0, None])
    (0.5, 0.5)
    """
    known = [value for value in values if value is not None]
    if not known:
        return None, None
    mean = math.fsum(known) / len(known)
    if len(known) < 2:
        return mean, None
    variance = math.fsum((value - mean) ** 2 for value in known) / (len(known) - 1)
    return mean, math.sqrt(variance / len(known))
