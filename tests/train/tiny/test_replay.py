"""Warm-start samples in an update: drawn by step, and learned as in supervised training."""

import pytest

torch = pytest.importorskip("torch")

from spade_runtime.errors import ConfigError  # noqa: E402
from spade_train import tiny  # noqa: E402
from spade_train.corpus import Corpus  # noqa: E402
from spade_train.learners.base import TrainBatch  # noqa: E402
from spade_train.learners.gradients import Gradients, LearnerSettings, Share  # noqa: E402
from spade_train.learners.torch_learner import TorchLearner  # noqa: E402
from spade_train.tiny.replay import Replay  # noqa: E402


@pytest.fixture(scope="module")
def policy():
    return tiny.load()


@pytest.fixture(scope="module")
def replay(policy):
    return Replay(policy.template, Corpus.open(["builtin"], max_words=24), 8, 0.5, seed=3)


def test_a_step_draws_the_same_samples_again_and_another_step_others(replay):
    first, again, other = replay(4), replay(4), replay(5)
    assert first == again
    assert [row.ids for row in first] != [row.ids for row in other]
    assert len({row.sample_id for row in first + other}) == 16
    assert all(row.role == "designer" and row.supervised and row.advantage == 0.5 for row in first)


def test_they_are_designs_and_hints_whose_replies_alone_are_learned(policy, replay):
    texts = []
    for row in replay(1):
        learned = [token for token, bit in zip(row.ids, row.loss_mask, strict=True) if bit]
        texts.append(policy.decode(learned))
        assert 0 < len(learned) < len(row.ids)
    designs = [text for text in texts if text.startswith("class ")]
    assert len(designs) == 6
    assert all("Here" in t or "The" in t or "With" in t for t in texts if t not in designs)


def test_the_gradient_is_that_of_supervised_training(policy, replay):
    row = replay(2)[0]
    count = sum(row.loss_mask)
    settings = LearnerSettings()
    found, tally = Gradients(policy.model).gradient(Share([row], [1 / count], None), settings)

    policy.model.zero_grad()
    logits = policy.model(input_ids=torch.tensor([row.ids])).logits[0, :-1]
    learned = torch.tensor(row.loss_mask[1:]).bool()
    target = torch.tensor(row.ids[1:])[learned]
    (0.5 * torch.nn.functional.cross_entropy(logits[learned], target)).backward()
    for mine, parameter in zip(found, policy.model.parameters(), strict=True):
        assert torch.allclose(mine, parameter.grad, atol=2e-5)
    assert tally.weight == count


def test_an_update_on_them_alone_brings_their_loss_down(replay):
    fresh = tiny.load()
    rates = {"agent": 1e-4, "designer": 1e-4}
    learner = TorchLearner(fresh.model, LearnerSettings(learning_rate=rates, weight_decay=0.0))
    rows = replay(9)

    def mean_logprob():
        values = learner.engine.logprobs(rows, learner.settings)
        return sum(map(sum, values)) / sum(map(len, values))

    before = mean_logprob()
    for step in range(3):
        learner.update(TrainBatch(rows, step))
    assert mean_logprob() > before


def test_a_model_without_that_warm_start_is_refused(policy, tmp_path):
    from spade_train.assemble import _replay
    from spade_train.presets import resolve

    words = [f"model={tmp_path}", "replay_samples=4"]
    with pytest.raises(ConfigError, match="replay_samples=4 goes over"):
        _replay(resolve("tiny", overrides=words), policy, None)
