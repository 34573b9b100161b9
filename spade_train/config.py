"""A run's configuration: one flat, typed model; presets, settings and ablations are layers of it.

A later layer overrides an earlier one: shared values, the setting's, the preset's, the ablation's
single change, a file of the user's, `key=value` words. What comes out is complete: the YAML that
`--dry-run` prints is what a run folder keeps, and reading it gives the same run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, Self

from pydantic import ConfigDict, ValidationError, model_validator

from spade_runtime.errors import ConfigError
from spade_runtime.spec import Kind
from spade_train.config_checks import impossible, readable, unknown_key
from spade_train.config_fields import RunFields
from spade_train.config_values import truths
from spade_train.skills import TRAINED_SKILLS, interleaved

KINDS: Mapping[str, tuple[Kind, ...]] = {
    "games": ("game",),
    "tools": ("tool_use",),
    "mixed": ("game", "tool_use"),
}


class RunConfig(RunFields):
    """Everything that decides a run, besides the code."""

    # The class's docstring lists every key; the schema says it key by key.
    model_config = ConfigDict(json_schema_extra={"description": __doc__})

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            for key in data:
                if key not in cls.model_fields:
                    raise ConfigError(unknown_key(str(key), cls.model_fields))
            for reason in truths(data, cls.model_fields):
                raise ConfigError(reason)
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


def _with_keys(summary: str | None) -> str:
    """Return the class's docstring with every key and its meaning, for `pydoc` and editors."""
    keys = [
        fill(f"{key}: {field.description}", 96, initial_indent=" " * 8, subsequent_indent=" " * 12)
        for key, field in RunConfig.model_fields.items()
    ]
    return "\n".join([f"{summary}\n\n    Attributes:", *keys, "    "])


RunConfig.__doc__ = _with_keys(RunConfig.__doc__)


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
