"""The weights that ship: they are small, they know the format, and they use hints."""

import json

import pytest

from spade_train import tiny
from spade_train.presets import resolve
from spade_train.tiny.measure import Measures, measure


@pytest.fixture(scope="module")
def policy():
    return tiny.load()


@pytest.fixture(scope="module")
def measured(policy, pool, validator) -> Measures:
    config = resolve("tiny", overrides=["environments=48", "heldout_plays=2", "seed=3"])
    return measure(policy, config, pool, validator)


def test_they_are_small_and_load_as_any_other_model(policy):
    files = list(tiny.folder().iterdir())
    assert sum(path.stat().st_size for path in files) < 12_000_000
    assert policy.model.config.model_type == "qwen3"
    assert policy.append_only
    recipe = json.loads((tiny.folder() / "recipe.json").read_text(encoding="utf-8"))
    assert recipe["parameters"] == policy.parameters


def test_most_designs_are_accepted(measured):
    assert measured.designs == 48
    assert measured.acceptance > 0.9, measured.refusals
    assert measured.hints > 0.95


def test_hints_are_used_and_there_is_room_to_learn(measured):
    unhinted, hinted = measured.heldout["win_rate"], measured.heldout["win_rate_hinted"]
    assert hinted > unhinted + 0.35
    assert measured.random < unhinted < 0.3
    assert measured.scripted == 1.0
    assert measured.random < 0.15
