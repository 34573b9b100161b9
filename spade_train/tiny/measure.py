"""What an embedded policy can do: acceptance of its designs, and play of the held-out set."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spade_train.assemble import VALIDATIONS_AT_ONCE, TrainingJudge
from spade_train.config import RunConfig
from spade_train.corpus import Corpus
from spade_train.heldout import heldout_environments, measure_heldout
from spade_train.ledger import Ledger
from spade_train.memory import Memory
from spade_train.policies.base import Sampling
from spade_train.population import mean_and_error
from spade_train.regeneration import Designer
from spade_train.rollout import Rollout, RolloutSettings
from spade_train.seeds import derive, environment_seeds
from spade_train.tiny.play import scripted_plays

if TYPE_CHECKING:
    from spade_runtime.sandbox import SandboxPool
    from spade_runtime.validation import Validator
    from spade_train.policies.hf import HFPolicy


@dataclass(frozen=True, slots=True)
class Measures:
    """Figures of one policy.

    Attributes:
        designs: tries of the designer.
        acceptance: share of them that the validator accepted (standard profile).
        hints: share of the accepted ones that got a hint.
        refusals: finding code (or reason) to how often it refused a design.
        heldout: win rates on the held-out set with standard errors over environments.
        random: win rate there of a player that picks any option on show.
        scripted: win rate there of the reference solutions.
    """

    designs: int
    acceptance: float
    hints: float
    refusals: Mapping[str, int]
    heldout: Mapping[str, float | int | None]
    random: float
    scripted: float


def measure(
    policy: HFPolicy, config: RunConfig, pool: SandboxPool, validator: Validator
) -> Measures:
    """Measure a policy under a run's configuration.

    Args:
        policy: the model.
        config: gives samplings, limits, the number of designs (`environments`) and of plays of
            each held-out environment (`heldout_plays`).
        pool: plays.
        validator: judges.
    """
    ledger = Ledger(parameters=policy.parameters)
    judge = TrainingJudge(validator, config.blind_win_limit)
    corpus = Corpus.open(config.corpus, max_words=config.corpus_max_words)
    designer = Designer(policy, judge, corpus, ledger, threads=VALIDATIONS_AT_ONCE)
    once = config.model_copy(update={"designer_tries": 1, "skills_per_regeneration": 99})
    made, _ = designer.regenerate(once, 0, Memory(1), 0, 0)
    refusals: dict[str, int] = {}
    for attempt in made.tries:
        if not attempt.accepted:
            codes = {f.code for f in attempt.report.findings if f.severity == "error"} if (
                attempt.report
            ) else {attempt.reason}  # fmt: skip
            for code in codes or {attempt.reason}:
                refusals[code] = refusals.get(code, 0) + 1
    sampling = Sampling(config.temperature, config.top_p, config.top_k, config.agent_max_tokens)
    settings = RolloutSettings(
        config.prompt_style, sampling, config.max_turns, config.context_tokens
    )
    heldout = measure_heldout(Rollout(pool, policy, settings, ledger, "heldout"), config, 0)
    return Measures(
        designs=len(made.tries),
        acceptance=made.acceptance or 0.0,
        hints=sum(d.hint is not None for d in made.pool) / max(len(made.pool), 1),
        refusals=refusals,
        heldout={
            key.removeprefix("heldout/"): value
            for key, value in heldout.items()
            if key.startswith("heldout/")
        },
        random=_scripted(config, pool, right=0.0),
        scripted=_scripted(config, pool, right=1.0),
    )


def _scripted(config: RunConfig, pool: SandboxPool, *, right: float) -> float:
    rates = []
    for one in heldout_environments(config):
        seeds = environment_seeds(config.heldout_plays, "heldout", one.name)
        player = random.Random(derive("scripted", one.name))
        with pool.open(one.source, instances=len(seeds)) as session:
            plays = scripted_plays(session, seeds, player, hint=one.hint or "", right=right)
        rates.append(sum(play.solved for play in plays) / len(plays))
    return mean_and_error(rates)[0] or 0.0
