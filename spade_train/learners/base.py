"""The neutral batch that the loop hands over, and the small protocol behind which learners stand.

A batch maps one to one onto TRL's inputs, SkyRL's `GeneratorOutput` and slime's `Sample`, so that
neither the loop nor the environments know which engine trains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from spade_train.tokens import Conversation

Role = Literal["agent", "designer"]
ROLES: tuple[Role, ...] = ("agent", "designer")


@dataclass(frozen=True, slots=True)
class TrainRow:
    """One sequence to train on.

    Attributes:
        role: whose sample it is.
        ids: all tokens, prompt included.
        loss_mask: per token, 1 where it was sampled.
        behaviour_logprobs: per token, the sampler's log-probability (0 where not sampled).
        kept: per token, the ids that could be drawn; None where all could.
        advantage: what the whole sample is worth, centred.
        policy_version: updates that the weights had seen when it was sampled.
        sample_id: the episode or design; rows of one id share one token mean.
        supervised: nobody sampled it, it is given: its importance weight is 1, and with an
            advantage of 1 its gradient is that of supervised training.
    """

    role: Role
    ids: list[int]
    loss_mask: list[int]
    behaviour_logprobs: list[float]
    kept: list[tuple[int, ...] | None] | None
    advantage: float
    policy_version: int
    sample_id: str
    supervised: bool = False

    @classmethod
    def given(
        cls, ids: list[int], mask: list[int], *, role: Role, weight: float, sample_id: str
    ) -> TrainRow:
        """Make a row of a text that is to be learned as it stands, with `weight` as advantage."""
        nothing = [0.0] * len(ids)
        return cls(role, ids, mask, nothing, None, weight, 0, sample_id, supervised=True)

    @classmethod
    def of(
        cls, sample: Conversation, *, role: Role, advantage: float, version: int, sample_id: str
    ) -> TrainRow:
        """Make a row of a conversation."""
        return cls(
            role, sample.ids, sample.mask, sample.logprobs, sample.kept, advantage, version,
            sample_id,
        )  # fmt: skip

    def to_state(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> TrainRow:
        """Build the row that `to_state` described."""
        kept = state["kept"]
        if kept is not None:
            kept = [None if ids is None else tuple(ids) for ids in kept]
        return cls(**{**state, "kept": kept})


@dataclass(frozen=True, slots=True)
class TrainBatch:
    """The rows of one update.

    Attributes:
        rows: of both roles; none of a void or hinted play.
        step: the loop's step, which also seeds the order of minibatches.
    """

    rows: Sequence[TrainRow] = field(default_factory=list)
    step: int = 0


class Learner(Protocol):
    """Owns the weights that train.

    Attributes:
        version: updates done so far.
    """

    version: int

    def update(self, batch: TrainBatch) -> dict[str, float | None]:
        """Train on a batch once, and return the metrics of it; an empty batch changes nothing."""
        ...

    def sync(self) -> None:
        """Hand the new weights to whatever generates with them."""
        ...

    def save(self, folder: Path) -> None:
        """Write everything that the next update depends on into an existing folder."""
        ...

    def load(self, folder: Path) -> None:
        """Take up what `save` wrote.

        Raises:
            CheckpointError: the folder is damaged or of another model.
        """
        ...
