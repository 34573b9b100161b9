"""A run's configuration: one flat, typed model; presets, settings and ablations are layers of it.

A later layer overrides an earlier one: shared values, the setting's, the preset's, the ablation's
single change, a file of the user's, `key=value` words. What comes out is complete: the YAML that
`--dry-run` prints is what a run folder keeps, and reading it gives the same run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from spade_runtime.errors import ConfigError
from spade_runtime.spec import IsolationLevel, Kind
from spade_train.config_checks import impossible, readable, unknown_key
from spade_train.objectives import ObjectiveName
from spade_train.rewards import Pairing, ReturnMode
from spade_train.skills import TRAINED_SKILLS, interleaved

Setting = Literal["games", "tools", "mixed"]
Ablation = Literal[
    "none",
    "no_corpus",
    "no_memory",
    "frozen_designer",
    "external_designer",
    "two_skills",
    "learning_potential",
    "solve_rate",
]
KINDS: Mapping[str, tuple[Kind, ...]] = {
    "games": ("game",),
    "tools": ("tool_use",),
    "mixed": ("game", "tool_use"),
}
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


def _none_word(value: Any) -> Any:
    return "none" if value is None else value


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) and value else value


# A single name stands for a list of one: `corpus=docs.jsonl`.
Names = Annotated[tuple[str, ...], BeforeValidator(_one_or_more)]


class RunConfig(BaseModel):
    """Everything that decides a run, besides the code.

    Attributes:
        preset: the preset that it began from, for the record.
        model: `tiny`, a folder, or a model hub's name.
        setting: `games`, `tools`, or `mixed`: a slot is then of the kind that trains its skill.
        ablation: the one change that was asked for.
        plays: whose number of plays a group has: `paper` (16) or `reference` (the reference code's
            ceil(192 / environments), 8 for 24).
        hinted_plays: plays with the hint at a pool's first step; as many as unhinted by default.
        invalid_reward: what an invalid design is paid; `none` makes no sample of it.
        learning_rate: of both roles; `designer_learning_rate` sets the designer's apart.
        kl_coefficient: of both roles; `designer_kl_coefficient` sets the designer's apart.
        acceptance_floor: below this share of accepted tries the designer's update is skipped;
            0 never skips.
        phases: later overrides: a list of {from: step, key: value, ...}.
        corpus: sources of documents: `builtin`, `builtin:TOPIC`, a file, a folder, `hf:NAME`.
        use_corpus: whether the designer's prompt holds a document.
        use_memory: whether it holds environments from the memory.
        train_designer: whether the designer's samples are trained on.
        skills: the skills to rotate over; those of the setting by default.
        exemplars: frontier environments of the memory in a prompt.
        counterexamples: too easy and too hard ones in a prompt.
        designer_tries: tries a slot, each with a fresh document.
        hint_tries: tries at a hint that gives nothing away.
        designer_url: an OpenAI-compatible URL for `ablation=external_designer`.
        designer_model: the model to ask there.
        prompt_style: `full`, or `compact` for the embedded policy.
        thinking: which role thinks before it answers.
        workers: processes that play and train side by side.
        max_grad_norm: gradient norm to clip at, by role.
        heldout_every: steps between measurements on the held-out environments; 0 never measures.
        heldout: folder of held-out environments; empty uses those that come with the model.
        heldout_plays: plays of each held-out environment.
        checkpoint_every: steps between checkpoints.
        lora_rank: rank of the adapters that train beside frozen weights; 0 trains all weights.
        lora_alpha: the adapters' product is scaled by lora_alpha / lora_rank.
        lora_targets: layers that get adapters, or `all-linear`.
        replay_samples: designs and hints of the embedded policy's warm start that each update goes
            over again, so that the agent's updates don't wear down the designer; 0 for none.
        replay_weight: what such a sample weighs against a design with an advantage of 1.
        judge_url: an OpenAI-compatible URL of a judge of tool criteria; its key stands in the
            environment variable SPADE_JUDGE_KEY. A design that it does not judge is not accepted.
        judge_model: the model to ask there.
        isolation: of the sandbox; `best_effort` takes what the machine has, `none` is for trusted
            code.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    preset: str = "none"
    model: str = Field(min_length=1)
    setting: Setting
    ablation: Ablation = "none"
    plays: Literal["paper", "reference"] = "paper"
    objective: ObjectiveName
    optimizer: Literal["shared", "per_role"]
    seed_pairing: Pairing
    return_mode: ReturnMode
    invalid_reward: Annotated[
        Annotated[float, Field(ge=-1, le=1)] | Literal["none"], BeforeValidator(_none_word)
    ]
    train_hints: bool
    hinted_plays: int = Field(ge=0)
    learning_rate: Positive
    designer_learning_rate: Positive | None = None
    adam_betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]]
    weight_decay: float = Field(ge=0)
    clip_low: float = Field(gt=0, lt=1)
    clip_high: Positive
    kl_coefficient: float = Field(ge=0)
    designer_kl_coefficient: float | None = Field(None, ge=0)
    importance_weight_max: Positive
    max_grad_norm: Positive = 1.0
    steps: Count
    environments: Count
    seeds_per_group: Count
    plays_per_seed: Count
    minibatch_episodes: Count
    regenerate_every: Count
    designer_delay: Count
    skills_per_regeneration: Count
    skills: Names = ()
    memory_capacity: Count
    exemplars: int = Field(2, ge=0)
    counterexamples: int = Field(2, ge=0)
    use_memory: bool = True
    use_corpus: bool = True
    corpus: Names = ("builtin",)
    corpus_max_words: Count
    difficulty: Literal["easy", "medium", "hard"]
    prompt_style: Literal["full", "compact"] = "full"
    thinking: Literal["none", "agent", "designer", "both"] = "none"
    designer_tries: Count = 5
    hint_tries: Count = 3
    train_designer: bool = True
    designer_url: str = ""
    designer_model: str = ""
    acceptance_floor: Share = 0.0
    max_turns: int = Field(ge=1, le=100)
    context_tokens: Count
    agent_max_tokens: Count
    designer_max_tokens: Count
    hint_max_tokens: Count
    hint_temperature: float = Field(ge=0)
    temperature: Positive
    top_p: float = Field(gt=0, le=1)
    top_k: int = Field(ge=0)
    anchor_low: Share
    anchor_high: Share
    anchor_ramp: Positive
    anchor_weight: float = Field(ge=0)
    regret_weight: float = Field(ge=0)
    regret_saturation: Positive
    designer_scale: Positive
    blind_win_limit: Share
    phases: tuple[dict[str, Any], ...] = ()
    heldout: str = ""
    heldout_every: int = Field(0, ge=0)
    heldout_plays: Count = 4
    checkpoint_every: Count = 1
    lora_rank: int = Field(0, ge=0)
    lora_alpha: Count = 32
    lora_targets: Names = ("all-linear",)
    replay_samples: int = Field(0, ge=0)
    replay_weight: Positive = 1.0
    judge_url: str = ""
    judge_model: str = ""
    isolation: IsolationLevel = "strict"
    workers: Count = 1
    seed: int = Field(0, ge=0)
    run_dir: str = ""

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            for key in data:
                if key not in cls.model_fields:
                    raise ConfigError(unknown_key(str(key), cls.model_fields))
        return data

    @model_validator(mode="after")
    def _refuse_impossible(self) -> Self:
        for reason in impossible(self):
            raise ConfigError(reason)
        previous = 0
        for phase in self.phases:
            previous = self._check_phase(phase, previous)
        return self

    def _check_phase(self, phase: dict[str, Any], previous: int) -> int:
        start = phase.get("from")
        if type(start) is not int:
            raise ConfigError(
                f"a phase says from which step on it holds, got {phase!r}; "
                "add `from: STEP` with a step above 0"
            )
        if not previous < start < self.steps:
            raise ConfigError(
                f"phase from={start} must come after step {previous} and before the run's last "
                f"({self.steps}); order the phases by `from`"
            )
        for key in phase:
            if key != "from" and key not in PHASE_KEYS:
                raise ConfigError(unknown_key(str(key), PHASE_KEYS, "key that a phase may change"))
        self._with({k: v for k, v in phase.items() if k != "from"})
        return start

    def _with(self, changes: Mapping[str, Any]) -> RunConfig:
        return build({**self.model_dump(), "phases": (), **changes})

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of environment that the setting trains on."""
        return KINDS[self.setting]

    @property
    def skill_pool(self) -> tuple[str, ...]:
        """The skills to rotate over; in a mixed run the kinds take turns."""
        skills = self.skills or TRAINED_SKILLS[self.setting]
        return interleaved(skills) if self.setting == "mixed" else skills

    @property
    def group_plays(self) -> int:
        """Unhinted plays of one environment in a step."""
        return self.seeds_per_group * self.plays_per_seed

    def kl_of(self, role: Literal["agent", "designer"]) -> float:
        """Return the KL coefficient of a role."""
        own = self.designer_kl_coefficient if role == "designer" else None
        return self.kl_coefficient if own is None else own

    def learning_rate_of(self, role: Literal["agent", "designer"]) -> float:
        """Return the learning rate of a role."""
        own = self.designer_learning_rate if role == "designer" else None
        return self.learning_rate if own is None else own

    def at(self, step: int) -> RunConfig:
        """Return the configuration that holds at a step: phases that have begun are applied."""
        changes: dict[str, Any] = {}
        for phase in self.phases:
            if phase["from"] <= step:
                changes.update({k: v for k, v in phase.items() if k != "from"})
        return self._with(changes) if changes else self

    def to_yaml(self) -> str:
        """Return the configuration as YAML, in the order of the fields."""
        import yaml

        text: str = yaml.safe_dump(
            self.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100
        )
        return text


# What a later phase may change: nothing that the shape of pools, windows or weights depends on.
PHASE_KEYS = (
    "anchor_high",
    "anchor_low",
    "anchor_ramp",
    "anchor_weight",
    "regret_weight",
    "regret_saturation",
    "context_tokens",
    "agent_max_tokens",
    "designer_max_tokens",
    "hint_max_tokens",
    "max_turns",
    "difficulty",
    "learning_rate",
    "designer_learning_rate",
    "kl_coefficient",
    "designer_kl_coefficient",
    "temperature",
    "hint_temperature",
    "designer_scale",
    "blind_win_limit",
)


def build(values: Mapping[str, Any]) -> RunConfig:
    """Return the configuration of complete values.

    Raises:
        ConfigError: a key is unknown or missing, or a value impossible.
    """
    try:
        return RunConfig.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(readable(error)) from None


def load(path: Path) -> RunConfig:
    """Read a complete configuration, such as a run folder's `config.yaml`.

    Raises:
        ConfigError: the file can't be read, or holds something else.
    """
    from spade_train.presets import read_yaml

    return build(read_yaml(path))
