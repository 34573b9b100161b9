"""Warm-start samples that the learner goes over again beside what the run sampled.

Both roles train the same small weights, and the agent's updates wear down what the designer can
write. A few designs and hints of the warm start in every update hold that in place: the KL term
alone only reaches the texts that are still sampled.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from spade_train.learners.base import TrainRow
from spade_train.seeds import derive
from spade_train.tiny.data import design_chat, hint_chat

if TYPE_CHECKING:
    from spade_train.chat import ChatTemplate
    from spade_train.corpus import Corpus

# Of the samples, so many are hints for a source; the others are designs.
HINT_SHARE = 0.25


class Replay:
    """Draws warm-start samples by step.

    Args:
        template: the policy's.
        corpus: of the run; None where its prompts hold no document.
        samples: rows a step.
        weight: of a row against a design whose advantage is 1.
        seed: of the run.
    """

    def __init__(
        self, template: ChatTemplate, corpus: Corpus | None, samples: int, weight: float, seed: int
    ) -> None:
        self.template = template
        self.corpus = corpus
        self.samples = samples
        self.weight = weight
        self.seed = seed

    def __call__(self, step: int) -> list[TrainRow]:
        """Return the rows of a step; the same step gives the same ones."""
        from spade_train.tiny.warmstart import encode

        rows = []
        for number in range(self.samples):
            rng = random.Random(derive("replay", self.seed, step, number))
            if number < HINT_SHARE * self.samples:
                chat = hint_chat(rng)
            else:
                chat = design_chat(self._document(rng), rng)
            row = encode(self.template, chat)
            name = f"replay-{step}-{number}"
            rows.append(
                TrainRow.given(
                    row.ids, row.mask, role="designer", weight=self.weight, sample_id=name
                )
            )
        return rows

    def _document(self, rng: random.Random) -> str | None:
        if self.corpus is None:
            return None
        return self.corpus.draw(rng.getrandbits(32), 0).text
