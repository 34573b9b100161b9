"""Phases: each key that a phase may change reaches the part that goes by it."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from spade_train.assemble import assembled  # noqa: E402
from spade_train.loop import train  # noqa: E402
from spade_train.objectives import Outcome  # noqa: E402
from spade_train.presets import resolve  # noqa: E402
from spade_train.run_folder import RunFolder  # noqa: E402

pytestmark = pytest.mark.usefixtures("isolation")

BAND = "anchor_low: 0.0, anchor_high: 0.05, anchor_ramp: 0.1, regret_weight: 0, anchor_weight: 1"


@pytest.fixture
def parts(forced, words, tmp_path):
    """Opens the parts of a run with these words."""

    def make(**changes):
        config = resolve("tiny", overrides=words(tmp_path / "run", **changes))
        folder = RunFolder.create(Path(config.run_dir), config)
        return config, assembled(config, folder, policy=forced())

    return make


def test_a_later_band_is_what_designs_are_paid_by(parts):
    config, opened = parts(phases=f"[{{from: 1, {BAND}, regret_saturation: 1}}]")
    half, never = Outcome("optimization", 0.15, 0.5), Outcome("optimization", 0.15, 0.0)
    with opened as run:
        run.configure(config.at(0))
        assert run.state.objective.score([half, never]) == pytest.approx([1.0, 0.4])
        run.configure(config.at(1))
        assert run.state.objective.score([half, never]) == pytest.approx([0.0, 1.0])


def test_an_objective_that_remembers_goes_on_remembering(parts):
    config, opened = parts(ablation="learning_potential", phases="[{from: 1, anchor_low: 0.1}]")
    with opened as run:
        run.state.objective.score([Outcome("optimization", None, 0.5, (0.5, 0.7))])
        before = run.state.objective.to_state()
        assert before
        run.configure(config.at(1))
        assert run.state.objective.to_state() == before


def test_a_later_context_is_what_prompts_may_fill_in_every_role(parts):
    config, opened = parts(
        context_tokens=1500, phases="[{from: 1, context_tokens: 3500}, {from: 2, "
        "context_tokens: 9000}]", thinking="agent",
    )  # fmt: skip
    with opened as run:
        agent, designer = run.rollout(config).policy, run.designer.policy
        assert agent is not designer
        for step, tokens in [(0, 1500), (1, 3500), (2, 4096)]:  # the model itself has 4096
            run.configure(config.at(step))
            assert (agent.context_tokens, designer.context_tokens) == (tokens, tokens)


def test_a_kl_that_comes_in_later_holds_to_the_first_weights(forced, words, tmp_path, lines):
    """Only after the first update do the weights differ from those that they are held to."""
    config = resolve(
        "tiny",
        overrides=words(
            tmp_path / "run",
            designer_kl_coefficient=0.0,
            learning_rate=3e-3,
            phases="[{from: 1, kl_coefficient: 0.1, designer_kl_coefficient: 0.1}]",
        ),
    )
    folder = RunFolder.create(tmp_path / "run", config)
    with folder.locked(), assembled(config, folder, policy=forced()) as run:
        assert train(run)
    metrics = lines(folder.metrics)
    trained = [line["kl"] for line in metrics if line["kl"] is not None]
    assert metrics[0]["kl"] == 0.0
    assert len(trained) >= 3
    assert all(kl > 0 for kl in trained[1:])
