"""Episodes as training sees them: what was said, what it was worth, what may train."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from spade_envs.episodes import Episode, Fault
from spade_runtime.spec import Kind
from spade_train.rewards import ReturnMode, episode_return
from spade_train.tokens import Conversation, Dialogue

Arm = Literal["unhinted", "hinted"]


@dataclass(frozen=True, slots=True)
class Group:
    """Plays of one environment in one arm, each with its own seed, in one fresh child.

    Attributes:
        name: of the design, unique in the run.
        sha256: of the source.
        source: the code.
        kind: game or tool_use.
        seeds: one play each; a seed may stand several times.
        hint: shown at the end of the first observation in the hinted arm, else None.
    """

    name: str
    sha256: str
    source: str
    kind: Kind
    seeds: Sequence[int]
    hint: str | None = None

    @property
    def arm(self) -> Arm:
        """Which arm it is."""
        return "unhinted" if self.hint is None else "hinted"


@dataclass(slots=True)
class Play:
    """One episode: what was said, what it was worth, and its training samples.

    Attributes:
        group: what it is a play of.
        seed: of the reset.
        observations: what the environment said, the reset's first; a hint is none of it.
        replies: the agent's messages.
        actions: what was extracted from them.
        rewards: one a turn.
        terminated: the environment ended the episode.
        truncated: a limit ended it.
        solved: terminated with the full reward.
        credit: share of user turns completed, for tools.
        cut: a reply or the context ran into its limit.
        fault: kind, code and message of what voided it; a void play has no return.
        dialogue: its conversation.
        checked: its samples are known to be sound.
        id: of the environment, once it was opened.
        policy: name of who plays.
    """

    group: Group
    seed: int
    observations: list[str] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    terminated: bool = False
    truncated: bool = False
    solved: bool = False
    credit: float | None = None
    cut: bool = False
    fault: dict[str, Any] | None = None
    dialogue: Dialogue | None = None
    checked: bool = False
    id: str | None = None
    policy: str | None = None

    @property
    def over(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.terminated or self.truncated or self.fault is not None

    @property
    def charged(self) -> bool:
        """Whether a fault of the environment itself, not of the host, voided it."""
        return self.fault is not None and not self.fault.get("host", False)

    @property
    def samples(self) -> list[Conversation]:
        """Its training samples; none for a void play."""
        return [] if self.fault or self.dialogue is None else self.dialogue.samples

    def value(self, mode: ReturnMode) -> float | None:
        """Return what it is worth, None where it is void."""
        if self.fault is not None:
            return None
        return episode_return(self.rewards, self.terminated, mode=mode, credit=self.credit)

    def to_json(self, step: int, mode: ReturnMode, max_turns: int) -> dict[str, Any]:
        """Return the line of `episodes/step-*.jsonl`: an episode that can be replayed.

        Args:
            step: of the run.
            mode: how its return is reckoned.
            max_turns: the limit that it was played under.
        """
        episode = Episode(
            id=self.id,
            policy=self.policy,
            sha256=self.group.sha256,
            seed=self.seed,
            max_turns=max_turns,
            hint=self.group.hint,
            step=step,
            name=self.group.name,
            arm=self.group.arm,
            # A play whose reset failed saw nothing.
            observations=self.observations or [""],
            actions=self.actions,
            # A reply that was cut is worth nothing and was never sent.
            rewards=self.rewards[: len(self.actions)],
            messages=[dict(message) for message in self.dialogue.messages] if self.dialogue else [],
            terminated=self.terminated,
            truncated=self.truncated,
            solved=self.solved,
            fault=None if self.fault is None else Fault(**self.fault),
            episode_return=self.value(mode),
        )
        return episode.model_dump(mode="json", exclude_none=True)
