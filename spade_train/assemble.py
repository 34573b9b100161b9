"""Puts a run together from its configuration: policies, learner, sandbox, corpus, records."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from spade_runtime.errors import ConfigError
from spade_runtime.spec import ValidationReport
from spade_train.config import RunConfig
from spade_train.corpus import Corpus
from spade_train.heldout import measure_heldout
from spade_train.learners.base import TrainRow
from spade_train.ledger import Ledger
from spade_train.loop import Run, Watcher
from spade_train.memory import Memory
from spade_train.objectives import Objective, make_objective
from spade_train.policies.base import Policy, Sampling
from spade_train.records import Records
from spade_train.regeneration import Designer
from spade_train.rollout import Rollout, RolloutSettings
from spade_train.run_folder import RunFolder
from spade_train.seeds import derive
from spade_train.state import RunState
from spade_train.trained import is_embedded, load_base
from spade_train.tries import UNJUDGED

if TYPE_CHECKING:
    from spade_runtime.sandbox import SandboxPool
    from spade_runtime.validation import Validator
    from spade_runtime.validation.judge import Judge
    from spade_train.learners.torch_learner import LearnerSettings, TorchLearner
    from spade_train.policies.hf import HFPolicy

# The embedded policy's answers; a validator and a rollout share the machine's processors.
VALIDATIONS_AT_ONCE = 2
GPU_MICRO_TOKENS = 32768


@dataclass(slots=True)
class TrainingJudge:
    """The validator as training uses it: the standard profile, the run's limit for blind wins.

    Attributes:
        validator: with its two pools.
        blind_win_limit: of the step's configuration.
    """

    validator: Validator
    blind_win_limit: float

    def validate(self, source: str, *, hint: str | None = None) -> ValidationReport:
        """Return the verdict on a source, with its hint where one is given."""
        # A text without a line break would be taken for a path.
        report = self.validator.validate(
            source if source.endswith("\n") else source + "\n",
            hint=hint,
            blind_win_limit=self.blind_win_limit,
            path="<design>",
        )
        return closed(report)


def closed(report: ValidationReport) -> ValidationReport:
    """Return the verdict where a judge that did not answer counts against a design.

    In the standard profile that is a warning; to train on what nobody judged would make it a pass.
    """
    if not any(finding.code == UNJUDGED for finding in report.findings):
        return report
    findings = [
        f.model_copy(update={"severity": "error"}) if f.code == UNJUDGED else f
        for f in report.findings
    ]
    return report.model_copy(update={"findings": findings, "verdict": "rejected"})


class Silent:
    """A watcher that shows nothing."""

    def phase(self, name: str) -> None:
        """Show nothing."""

    def step_done(self, line: dict[str, Any]) -> None:
        """Show nothing."""


@contextmanager
def assembled(
    config: RunConfig,
    folder: RunFolder,
    *,
    watcher: Watcher | None = None,
    warn: Callable[[str], None] = lambda _: None,
    should_stop: Callable[[], bool] = lambda: False,
    policy: HFPolicy | None = None,
) -> Iterator[Run]:
    """Open all that a run needs, and close it at the end.

    Args:
        config: of the run.
        folder: of the run, locked by the caller.
        watcher: of the progress.
        warn: told what went wrong where the run can go on.
        should_stop: asked at each step's end.
        policy: the model to train; loaded from `config.model` by default.

    Raises:
        PolicyError: the model can't be loaded.
        HostError: the sandbox can't isolate here.
        UsageError: the corpus can't be read.
    """
    from spade_runtime.sandbox import SandboxPool
    from spade_runtime.validation import Validator
    from spade_train.crew import Crew
    from spade_train.learners.torch_learner import TorchLearner, reference_of

    corpus = (
        Corpus.open(config.corpus, max_words=config.corpus_max_words, warn=warn)
        if config.use_corpus
        else None
    )
    agent = with_adapters(policy or load_policy(config), config)
    own_context = agent.context_tokens
    agent.limit_context(config.context_tokens)
    ledger = Ledger(parameters=agent.parameters)
    state = RunState(
        Memory(config.memory_capacity),
        _objective(config),
        ledger,
        config=config.model_dump(mode="json"),
    )
    settings = learner_settings(config)
    on_processor = agent.model.device.type == "cpu"
    if not on_processor:
        settings = replace(settings, micro_tokens=GPU_MICRO_TOKENS)
    # A phase may bring in a KL that the run begins without; by then the first weights are gone.
    reference = reference_of(agent.model, *map(learner_settings, stages(config)))
    learner = TorchLearner(agent.model, settings, reference)
    with ExitStack() as stack:
        # First of all that starts processes: it is what a machine may not have.
        sandbox = stack.enter_context(SandboxPool(level=config.isolation))
        if config.workers > 1 and on_processor:
            crew = stack.enter_context(Crew(agent.model, reference, config.workers))
            agent.engine = learner.engine = crew
        writer = designer_policy(config, agent)
        validator = stack.enter_context(
            Validator(pool=sandbox, level=config.isolation, judge=_criteria_judge(config))
        )
        judge = TrainingJudge(validator, config.blind_win_limit)
        player = role_view(agent, config.thinking in ("agent", "both"), config.thinking)
        records = Records(folder, writer.name, warn, agent=player.name)
        speakers = [policy for policy in (agent, player, writer) if policy.trainable]
        yield Run(
            config=config,
            state=state,
            designer=Designer(writer, judge, corpus, ledger, threads=VALIDATIONS_AT_ONCE),
            rollout=lambda now: _rollout(sandbox, player, now, ledger, "agent"),
            learner=learner,
            configure=_configurer(config, learner, judge, state, speakers, own_context),
            records=records,
            measure=lambda now, step: measure_heldout(
                _rollout(sandbox, player, now, ledger, "heldout"),
                now,
                step,
                keep=lambda plays: records.heldout(step, plays, now),
            ),
            watcher=watcher or Silent(),
            should_stop=should_stop,
            replay=_replay(config, agent, corpus),
            warn=warn,
        )


def load_policy(config: RunConfig) -> HFPolicy:
    """Load the model that a configuration names.

    Raises:
        PolicyError: it can't be loaded.
    """
    return load_base(config.model)


def with_adapters(policy: HFPolicy, config: RunConfig) -> HFPolicy:
    """Return the policy with LoRA adapters where the configuration asks for them.

    Raises:
        ConfigError: the model has none of the layers.
    """
    if not config.lora_rank:
        return policy
    from spade_train.learners.adapters import with_lora

    return policy.with_model(
        with_lora(
            policy.model,
            rank=config.lora_rank,
            alpha=config.lora_alpha,
            targets=config.lora_targets,
            seed=derive("lora", config.seed),
        )
    )


def designer_policy(config: RunConfig, agent: HFPolicy) -> Policy:
    """Return who designs: the agent's own weights, a frozen copy of them, or a URL."""
    thinks = config.thinking in ("designer", "both")
    if config.ablation == "external_designer":
        from spade_train.policies.openai import Endpoint, OpenAIPolicy

        # Prompts are cut as they would be for the agent: who writes is all that changes.
        return OpenAIPolicy(
            Endpoint(config.designer_url, config.designer_model),
            measure=role_view(agent, thinks, config.thinking),
        )
    if not config.train_designer:
        # The weights are shared, so a designer that must not change needs a copy of its own.
        agent = agent.with_model(copy.deepcopy(agent.model).requires_grad_(False))
    return role_view(agent, thinks, config.thinking)


def role_view(policy: HFPolicy, thinks: bool, setting: str) -> HFPolicy:
    """Return the policy with its role's way of thinking; untouched where nobody thinks."""
    return policy if setting == "none" else policy.with_template({"enable_thinking": thinks})


def learner_settings(config: RunConfig) -> LearnerSettings:
    """Return the numbers of the update that a configuration asks for."""
    from spade_train.learners.base import ROLES
    from spade_train.learners.torch_learner import LearnerSettings

    return LearnerSettings(
        learning_rate={role: config.learning_rate_of(role) for role in ROLES},
        betas=config.adam_betas,
        weight_decay=config.weight_decay,
        clip_low=config.clip_low,
        clip_high=config.clip_high,
        kl_coefficient={role: config.kl_of(role) for role in ROLES},
        importance_weight_max=config.importance_weight_max,
        minibatch_episodes=config.minibatch_episodes,
        optimizer=config.optimizer,
        max_grad_norm=config.max_grad_norm,
        temperature=dict.fromkeys(ROLES, config.temperature),
        seed=config.seed,
    )


def _replay(
    config: RunConfig, agent: HFPolicy, corpus: Corpus | None
) -> Callable[[int], list[TrainRow]]:
    if not config.replay_samples:
        return lambda _: []
    from spade_train.tiny.replay import Replay

    if not is_embedded(config.model):
        raise ConfigError(
            f"replay_samples={config.replay_samples} goes over the embedded policy's warm start, "
            f"which model={config.model} never had; set replay_samples=0"
        )
    return Replay(agent.template, corpus, config.replay_samples, config.replay_weight, config.seed)


def _criteria_judge(config: RunConfig) -> Judge | None:
    from spade_runtime.validation.judge import JudgeSettings

    return JudgeSettings(config.judge_url, config.judge_model).judge() if config.judge_url else None


def stages(config: RunConfig) -> list[RunConfig]:
    """Return the configurations that a run goes through: the first, then each phase's."""
    return [config, *(config.at(phase["from"]) for phase in config.phases)]


def _objective(config: RunConfig, before: Objective | None = None) -> Objective:
    """Return what designs are paid for, with what an earlier phase's one remembers."""
    objective = make_objective(
        config.objective,
        low=config.anchor_low,
        high=config.anchor_high,
        ramp=config.anchor_ramp,
        regret_weight=config.regret_weight,
        anchor_weight=config.anchor_weight,
        regret_saturation=config.regret_saturation,
    )
    if before is not None:
        objective.from_state(before.to_state())
    return objective


def _configurer(
    config: RunConfig,
    learner: TorchLearner,
    judge: TrainingJudge,
    state: RunState,
    speakers: Sequence[Policy],
    own_context: int | None,
) -> Callable[[RunConfig], None]:
    """Return what hands a phase's numbers on to the parts that hold such numbers.

    Args:
        config: of the whole run; without phases there is nothing to hand on.
        learner: trains by them.
        judge: refuses by them.
        state: pays by them.
        speakers: the run's own model in its roles.
        own_context: the longest conversation that this model can have.
    """
    if not config.phases:
        return lambda _: None

    def configure(now: RunConfig) -> None:
        micro_tokens = learner.settings.micro_tokens
        learner.configure(replace(learner_settings(now), micro_tokens=micro_tokens))
        judge.blind_win_limit = now.blind_win_limit
        state.objective = _objective(now, state.objective)
        for policy in speakers:
            policy.context_tokens = min(now.context_tokens, own_context or now.context_tokens)

    return configure


def _rollout(
    sandbox: SandboxPool, policy: Policy, config: RunConfig, ledger: Ledger, role: str
) -> Rollout:
    sampling = Sampling(config.temperature, config.top_p, config.top_k, config.agent_max_tokens)
    settings = RolloutSettings(
        config.prompt_style, sampling, config.max_turns, config.context_tokens
    )
    return Rollout(sandbox, policy, settings, ledger, role)


def describe(run: Run) -> Mapping[str, Any]:
    """Return what a run consists of, for its first lines on the terminal."""
    return {
        "model": run.config.model,
        "parameters": run.state.ledger.parameters,
        "setting": run.config.setting,
        "steps": run.config.steps,
        "environments": run.config.environments,
        "plays": run.config.environments * run.config.group_plays,
    }
