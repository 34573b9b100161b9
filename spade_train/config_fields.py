"""The keys of a run's configuration: form, default and meaning of each, and nothing that acts.

The text below a key is its description: the JSON Schema carries it, `pydoc` shows it with the class
`RunConfig`, and `docs/training-keys.md` is written from it. A key without a default gets its value
from a preset (`spade_train/presets`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from spade_runtime.spec import IsolationLevel
from spade_train.objectives import ObjectiveName
from spade_train.rewards import Pairing, ReturnMode

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
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


def _none_word(value: Any) -> Any:
    return "none" if value is None else value


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) and value else value


# A single name stands for a list of one: `corpus=docs.jsonl`.
Names = Annotated[tuple[str, ...], BeforeValidator(_one_or_more)]


class RunFields(BaseModel):
    """The keys of `RunConfig`."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, use_attribute_docstrings=True
    )

    preset: str = "none"
    """The preset that the run began from; kept for the record."""
    model: str = Field(min_length=1)
    """The model to train: `tiny` (the embedded one), a folder, or a model hub's name."""
    setting: Setting
    """What is designed: `games`, `tools` (tool use), or `mixed` (each slot is of the kind that
    trains its skill)."""
    ablation: Ablation = "none"
    """The one thing that differs from the full method; the keys that this takes are set with it."""
    plays: Literal["paper", "reference"] = "paper"
    """Whose number of plays a group has: `paper` keeps `seeds_per_group`, `reference` sets it as
    the reference code does, to 192 / `environments`, rounded up."""
    objective: ObjectiveName
    """What a designer is paid for: `blend` (regret and anchor by their weights), `regret` alone,
    `anchor` (the win rate's place in the band) alone, or `learning_potential` (distance of the mean
    return from its skill's moving average)."""
    optimizer: Literal["shared", "per_role"]
    """One Adam for both roles (the paper), or one each, which learns much better with a small
    model."""
    seed_pairing: Pairing
    """Whether hinted and unhinted plays meet the same seeds (`paired`: what makes a seed easy or
    hard cancels) or others (`independent`)."""
    return_mode: ReturnMode
    """What an episode is worth: `terminal` (the last reward if the environment ended it, else 0),
    `sum` of the rewards, or `best` of them; the last two take the share of user turns completed
    where that is more. Clamped to [-1, 1]."""
    invalid_reward: Annotated[
        Annotated[float, Field(ge=-1, le=1)] | Literal["none"], BeforeValidator(_none_word)
    ]
    """What the designer is paid for an invalid design, one a slot at most; `none` makes no sample
    of it."""
    train_hints: bool
    """Whether the tokens of a hint are trained with those of its design."""
    hinted_plays: int = Field(ge=0)
    """Plays of each environment with its hint, at the pool's first step; where nothing sets it, as
    many as unhinted ones. 0 asks for no hints."""
    learning_rate: Positive
    """Step size of AdamW, constant over the run; `designer_learning_rate` sets the designer's
    apart."""
    designer_learning_rate: Positive | None = None
    """The designer's step size with `optimizer=per_role`; null takes `learning_rate`."""
    adam_betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]]
    """AdamW's decay of its averages of gradient and squared gradient."""
    weight_decay: float = Field(ge=0)
    """AdamW's weight decay, on all parameters."""
    clip_low: float = Field(gt=0, lt=1)
    """The ratio of new to old probability is clipped below 1 - `clip_low`."""
    clip_high: Positive
    """It is clipped above 1 + `clip_high`; wider than below, so that rare tokens can rise."""
    kl_coefficient: float = Field(ge=0)
    """Weight of the divergence from the first weights in the loss; above 0 a frozen copy of the
    model is held, unless adapters are trained."""
    designer_kl_coefficient: float | None = Field(None, ge=0)
    """The designer's weight of it; null takes `kl_coefficient`."""
    importance_weight_max: Positive
    """Upper limit of the weight that makes up for sampler and trainer giving different
    probabilities."""
    max_grad_norm: Positive = 1.0
    """Each role's gradient is scaled down to this norm."""
    steps: Count
    """Steps of the run; each ends with one update."""
    environments: Count
    """Slots: places for an environment in the pool."""
    seeds_per_group: Count
    """Different seeds, that is tasks, of each environment in a step."""
    plays_per_seed: Count
    """Unhinted plays of each seed."""
    minibatch_episodes: Count
    """Samples (episodes and designs alike) of one optimizer step; a short last minibatch is spread
    over the others. With a single minibatch a step the clip can't bind."""
    regenerate_every: Count
    """Steps that a pool is played before a new one replaces it."""
    designer_delay: Count
    """Steps from a design to the update that trains it: a multiple of `regenerate_every`, since its
    window has to close first."""
    skills_per_regeneration: Count
    """Skills that share the slots of one pool; the rotation goes on from there."""
    skills: Names = ()
    """The skills to rotate over; empty takes those of the setting."""
    memory_capacity: Count
    """Environments that the memory holds; the oldest goes first."""
    exemplars: int = Field(2, ge=0)
    """Environments of the memory that a designer's prompt shows as good ones: same skill, win rate
    from 0.15 to 0.85, highest regret first."""
    counterexamples: int = Field(2, ge=0)
    """Environments of the memory that it shows as too easy (won above 0.9) or too hard (below
    0.1)."""
    use_memory: bool = True
    """Whether the designer's prompt shows the memory at all."""
    use_corpus: bool = True
    """Whether the designer's prompt holds a document."""
    corpus: Names = ("builtin",)
    """Sources of documents: `builtin`, `builtin:TOPIC`, a file, a folder, `hf:NAME`."""
    corpus_max_words: Count
    """Words to which a document is cut."""
    difficulty: Literal["easy", "medium", "hard"]
    """The difficulty that the full designer's prompt asks for (won without a hint in some 7, 5 or 3
    plays of 10); the compact prompt has none."""
    prompt_style: Literal["full", "compact"] = "full"
    """The form of all prompts: `full`, or `compact` for the embedded policy."""
    thinking: Literal["none", "agent", "designer", "both"] = "none"
    """Which role thinks before it answers; `none` leaves the model's chat template as it is."""
    designer_tries: Count = 5
    """Tries at an environment for a slot, each with a fresh document; then the slot stays empty."""
    hint_tries: Count = 3
    """Tries at a hint that gives nothing away; then the environment has none."""
    train_designer: bool = True
    """Whether the designer's samples are trained on; without, a frozen copy of the model
    designs."""
    designer_url: str = ""
    """An OpenAI-compatible URL that designs, for `ablation=external_designer`."""
    designer_model: str = ""
    """The model to ask there."""
    acceptance_floor: Share = 0.0
    """The designer's update is skipped where a smaller share of its tries was accepted; 0 never
    skips."""
    max_turns: int = Field(ge=1, le=100)
    """Messages of an episode at most; an environment's own lower limit holds as well."""
    context_tokens: Count
    """Tokens of a conversation at most, prompt and answers together. A play that has no room left
    is cut; a designer's prompt loses document and memory until it fits."""
    agent_max_tokens: Count
    """Tokens of one message of the agent at most; a message that is cut ends the episode."""
    designer_max_tokens: Count
    """Tokens of a design at most."""
    hint_max_tokens: Count
    """Tokens of a hint's answer at most, any thinking included."""
    hint_temperature: float = Field(ge=0)
    """Sampling temperature of hints; lower than of plays, since a hint is to be right rather than
    new. 0 takes the likeliest token. Hints that are trained are sampled at `temperature`."""
    temperature: Positive
    """Sampling temperature of designs and plays."""
    top_p: float = Field(gt=0, le=1)
    """Tokens are sampled from the likeliest that hold this much probability; 1 cuts nothing."""
    top_k: int = Field(ge=0)
    """Tokens are sampled from so many of the likeliest; 0 cuts nothing."""
    anchor_low: Share
    """Lower edge of the band of win rates for which the anchor is 1."""
    anchor_high: Share
    """Upper edge of the band."""
    anchor_ramp: Positive
    """Distance from the band, in win rate, over which the anchor falls to 0."""
    anchor_weight: float = Field(ge=0)
    """Weight of the anchor in `objective=blend`."""
    regret_weight: float = Field(ge=0)
    """Weight of the regret in `objective=blend`."""
    regret_saturation: Positive
    """The regret from which on it counts in full there: 0.15 in the reference code; 1 gives the
    paper's text."""
    designer_scale: Positive
    """Factor on the designs' advantages, which makes up for there being many more plays than
    designs in an update; 32 is what the reference's rule comes to."""
    blind_win_limit: Share
    """Win rate of a policy that ignores the task above which the validator refuses a design
    (SPD701)."""
    phases: tuple[dict[str, Any], ...] = ()
    """Later changes of some keys: a list of {from: step, key: value, ...}."""
    heldout: str = ""
    """Folder of held-out environments; empty takes those that come with the embedded policy."""
    heldout_every: int = Field(0, ge=0)
    """Steps between measurements on the held-out environments, which are never trained on; 0 never
    measures."""
    heldout_plays: Count = 4
    """Plays of each held-out environment in a measurement, and as many with its hint."""
    checkpoint_every: Count = 1
    """Steps between checkpoints; a killed run repeats what came after the last."""
    lora_rank: int = Field(0, ge=0)
    """Rank of the adapters that are trained beside frozen weights; 0 trains all weights."""
    lora_alpha: Count = 32
    """The adapters' product is scaled by `lora_alpha` / `lora_rank`."""
    lora_targets: Names = ("all-linear",)
    """Layers that get adapters, or `all-linear`."""
    replay_samples: int = Field(0, ge=0)
    """Designs and hints of the embedded policy's warm start that each update goes over again, so
    that the agent's updates don't wear down what the shared weights can write; 0 for none."""
    replay_weight: Positive = 1.0
    """What such a sample weighs against a design with an advantage of 1."""
    judge_url: str = ""
    """An OpenAI-compatible URL of a judge of tool criteria; its key stands in the environment
    variable SPADE_JUDGE_KEY. A design that it leaves unjudged is not accepted."""
    judge_model: str = ""
    """The model to ask there."""
    isolation: IsolationLevel = "strict"
    """Of the sandbox: `strict` refuses to run where the machine can't isolate, `best_effort` takes
    what the machine has, `none` is for trusted code."""
    workers: Count = 1
    """Processes that sample and learn side by side on a processor; on a GPU it has no effect. Runs
    are equal bit for bit only with the same number."""
    seed: int = Field(0, ge=0)
    """All randomness of the run follows from it."""
    run_dir: str = ""
    """The run's folder; empty takes the first free one of `runs/PRESET-001`, `-002`, ..."""
