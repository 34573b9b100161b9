"""What the recorded episodes say about each environment: win rates, hint regret, reward tiers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spade_train.rewards import Pairing, Regret, SeedReturn, hint_regret

Episode = Mapping[str, Any]
KEPT_SEEDS = 2


@dataclass(slots=True)
class Played:
    """One environment in the pool in which it was played.

    Attributes:
        plays: unhinted plays that count.
        wins: those that solved it.
        hinted_plays: hinted plays that count.
        hinted_wins: those that solved it.
        void: plays that a fault of the environment took out, in both arms.
        faults: how often each kind of fault was seen.
        regret: hint regret at the pool's first step.
        rewards: distinct rewards that turns paid, rounded.
        turns: messages of the agent over all plays that count.
        by_step: for each step (plays, wins), unhinted.
        kept: some episodes to show: pairs on one seed, where the hint made a difference first.
    """

    plays: int = 0
    wins: int = 0
    hinted_plays: int = 0
    hinted_wins: int = 0
    void: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    regret: Regret | None = None
    rewards: set[float] = field(default_factory=set)
    turns: int = 0
    by_step: dict[int, tuple[int, int]] = field(default_factory=dict)
    kept: list[Episode] = field(default_factory=list)

    @property
    def win_rate(self) -> float | None:
        """Share of unhinted plays that solved it."""
        return self.wins / self.plays if self.plays else None

    @property
    def hinted_win_rate(self) -> float | None:
        """Share of hinted plays that solved it."""
        return self.hinted_wins / self.hinted_plays if self.hinted_plays else None

    @property
    def between_rewards(self) -> int:
        """Distinct rewards strictly between 0 and 1: the tiers of partial credit."""
        return sum(0 < reward < 1 for reward in self.rewards)

    def take(self, step: int, episodes: Sequence[Episode], pairing: Pairing = "paired") -> None:
        """Take in all episodes of one step."""
        for episode in episodes:
            self._count(step, episode)
        hinted = [e for e in episodes if e["arm"] == "hinted"]
        if hinted and self.regret is None:
            unhinted = [e for e in episodes if e["arm"] != "hinted"]
            self.regret = hint_regret(_returns(hinted), _returns(unhinted), pairing=pairing)
            self.kept = _pairs(hinted, unhinted)
        elif not self.kept:
            self.kept = [e for e in episodes if not e.get("fault")][:KEPT_SEEDS]

    def _count(self, step: int, episode: Episode) -> None:
        if episode.get("fault"):
            self.void += 1
            kind = _fault_kind(episode["fault"])
            self.faults[kind] = self.faults.get(kind, 0) + 1
            return
        solved = bool(episode.get("solved"))
        self.turns += int(episode.get("turns") or _replies(episode))
        self.rewards.update(round(float(reward), 4) for reward in episode.get("rewards") or ())
        if episode["arm"] == "hinted":
            self.hinted_plays += 1
            self.hinted_wins += solved
            return
        self.plays += 1
        self.wins += solved
        plays, wins = self.by_step.get(step, (0, 0))
        self.by_step[step] = (plays + 1, wins + solved)


def group_by_design(episodes: Iterable[Episode]) -> dict[tuple[str, str], list[Episode]]:
    """Return the episodes of one step by the hash and, where they have one, the name of theirs."""
    groups: dict[tuple[str, str], list[Episode]] = {}
    for episode in episodes:
        key = (str(episode["design"]), str(episode.get("name") or ""))
        groups.setdefault(key, []).append(episode)
    return groups


def _replies(episode: Episode) -> int:
    """Return how often the agent spoke; a reply that was cut has no reward of its own."""
    said = sum(message.get("role") == "assistant" for message in episode.get("messages") or ())
    return said or len(episode.get("rewards") or ())


def _fault_kind(fault: Any) -> str:
    if isinstance(fault, Mapping):
        return str(fault.get("code") or fault.get("kind") or "fault")
    return str(fault)


def _returns(episodes: Sequence[Episode]) -> list[SeedReturn]:
    return [
        SeedReturn(int(e["seed"]), None if e.get("fault") else _value(e.get("return")))
        for e in episodes
    ]


def _value(value: Any) -> float | None:
    return None if value is None else float(value)


def _pairs(hinted: Sequence[Episode], unhinted: Sequence[Episode]) -> list[Episode]:
    """Return up to two seeds' plays in both arms, seeds where the hint made a difference first."""
    with_hint, without = ({e["seed"]: e for e in reversed(arm)} for arm in (hinted, unhinted))

    def telling(seed: int) -> tuple[bool, bool]:
        a, b = with_hint[seed], without[seed]
        faulty = bool(a.get("fault") or b.get("fault"))
        return (faulty, not (a.get("solved") and not b.get("solved")))

    seeds = sorted((s for s in with_hint if s in without), key=lambda s: (telling(s), s))
    return [play for seed in seeds[:KEPT_SEEDS] for play in (without[seed], with_hint[seed])]
