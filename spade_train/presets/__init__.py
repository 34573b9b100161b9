"""Presets, settings and ablations, and how they are laid over one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from spade_runtime.errors import ConfigError
from spade_train.config import KINDS, RunConfig, build
from spade_train.config_checks import unknown_key
from spade_train.skills import TRAINED_SKILLS, interleaved, kind_of

PRESETS = (
    "tiny",
    "games-4b",
    "games-8b",
    "games-30b",
    "games-nemotron-30b",
    "tools-4b",
    "tools-8b",
    "tools-30b",
)
SETTINGS = ("games", "tools", "mixed")
NOT_OFFERED = ("fixed_pool", "fixed_rlve")
REFERENCE_BATCH = 192

# Each changes one thing besides the word `ablation` itself.
ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "none": {},
    "no_corpus": {"use_corpus": False},
    "no_memory": {"use_memory": False},
    "frozen_designer": {"train_designer": False},
    "external_designer": {"train_designer": False},
    "two_skills": {},
    "learning_potential": {"objective": "learning_potential"},
    "solve_rate": {"objective": "anchor"},
}


def resolve(
    preset: str | None = None,
    *,
    file: Path | None = None,
    overrides: Iterable[str] = (),
) -> RunConfig:
    """Return the configuration of a preset with a user's file and `key=value` words over it.

    Args:
        preset: name of a preset; None takes the file's `preset`, or else `tiny`.
        file: YAML file of some keys.
        overrides: words such as `seed=11`, `ablation=no_corpus`, `corpus=[a.jsonl,b.jsonl]`.

    Raises:
        ConfigError: an unknown key, preset, setting or ablation, or a value that can't be.
    """
    asked = {**(read_yaml(file) if file else {}), **parse_overrides(overrides)}
    for key in asked:
        if key not in RunConfig.model_fields:
            raise ConfigError(unknown_key(key, RunConfig.model_fields))
    name = _choice("preset", preset or asked.get("preset", "tiny"), PRESETS)
    own = _resource(name)
    setting = _choice("setting", asked.get("setting", own["setting"]), SETTINGS)
    ablation = _ablation(asked.get("ablation", "none"))
    if own.get("skills"):  # those of the preset's that the setting trains
        own["skills"] = [skill for skill in own["skills"] if kind_of(skill) in KINDS[setting]]
    values = {
        **_resource("shared"),
        **_resource(f"setting-{setting}"),
        **own,
        "setting": setting,
        "ablation": ablation,
        **_change(ablation, setting),
    }
    values.update(asked, preset=name, setting=setting, ablation=ablation)
    if values.get("plays") == "reference":
        values.update(_reference_plays(values, asked))
    if values.get("hinted_plays") is None:
        values["hinted_plays"] = _product(values, "seeds_per_group", "plays_per_seed")
    config = build(values)
    _refuse_undone(config, asked)
    return config


def parse_overrides(words: Iterable[str]) -> dict[str, Any]:
    """Read `key=value` words; a value is read as YAML.

    >>> parse_overrides(["seed=11", "corpus=[a.jsonl]", "run_dir=runs/a"])
    {'seed': 11, 'corpus': ['a.jsonl'], 'run_dir': 'runs/a'}
    """
    import yaml

    values: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        key = key.strip().removeprefix("--").replace("-", "_")
        if not equals or not key:
            raise ConfigError(f"an override is written key=value, got {word!r}")
        try:
            values[key] = yaml.safe_load(text) if text.strip() else ""
        except yaml.YAMLError as error:
            raise ConfigError(f"the value of {key} is not readable: {text!r} ({error})") from None
    return values


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file of keys and values.

    Raises:
        ConfigError: the file can't be read, is no YAML, or holds no mapping.
    """
    import yaml

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"there is no configuration file {path}; name a YAML file of `key: value` lines, or a "
            f"preset: {', '.join(PRESETS)}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"can't read the configuration {path}: {error}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is no YAML: {error}") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path} holds a {type(data).__name__}, not `key: value` lines")
    return {str(key): value for key, value in data.items()}


def _resource(name: str) -> dict[str, Any]:
    return read_yaml(Path(str(files("spade_train.presets").joinpath(f"{name}.yaml"))))


def _choice(what: str, value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ConfigError(unknown_key(str(value), known, what))
    return str(value)


def _ablation(value: Any) -> str:
    word = "none" if value is None else value
    if word in NOT_OFFERED:
        raise ConfigError(f"ablation={word} is not offered yet; see CHANGELOG.md for what is")
    return _choice("ablation", word, tuple(ABLATIONS))


def _change(ablation: str, setting: str) -> dict[str, Any]:
    if ablation == "two_skills":
        trained = TRAINED_SKILLS[setting]
        return {"skills": (interleaved(trained) if setting == "mixed" else trained)[:2]}
    return dict(ABLATIONS[ablation])


def _refuse_undone(config: RunConfig, asked: Mapping[str, Any]) -> None:
    """Refuse what would undo the ablation that was asked for beside it."""
    for key, value in _change(config.ablation, config.setting).items():
        got = getattr(config, key)
        # Which two skills may be chosen.
        kept = len(got) == len(value) if key == "skills" else got == value
        if not kept:
            raise ConfigError(
                f"ablation={config.ablation} means {key}={_word(value)}, but {key}={_word(got)} "
                f"was asked for; leave one of them out"
            )


def _word(value: Any) -> str:
    """Return a value as it is written on the command line."""
    if isinstance(value, tuple | list):
        return f"[{','.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _reference_plays(values: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, int]:
    """Return the group size of the reference code: ceil(192 / environments)."""
    environments = values["environments"]
    if type(environments) is not int or environments < 1:
        return {}
    plays = -(-REFERENCE_BATCH // environments)
    if asked.get("seeds_per_group", plays) != plays:
        raise ConfigError(
            f"plays=reference means seeds_per_group={plays} for environments={environments}, "
            f"but seeds_per_group={asked['seeds_per_group']} was asked for; leave one of them out"
        )
    return {"seeds_per_group": plays}


def _product(values: Mapping[str, Any], *keys: str) -> int:
    """Return the product of whole numbers; 0 where one is none, which pydantic then refuses."""
    product = 1
    for key in keys:
        product *= values[key] if type(values.get(key)) is int else 0
    return product
