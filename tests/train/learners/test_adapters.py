"""LoRA on a random small model: only adapters train, and they come back bit for bit."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from spade_runtime.errors import ConfigError  # noqa: E402
from spade_train.learners.adapters import WEIGHTS, with_lora  # noqa: E402
from spade_train.learners.base import TrainBatch, TrainRow  # noqa: E402
from spade_train.learners.torch_learner import LearnerSettings, TorchLearner  # noqa: E402
from spade_train.policies.base import Sampling  # noqa: E402
from spade_train.tokens import Conversation  # noqa: E402

SETTINGS = LearnerSettings(
    learning_rate={"agent": 1e-2, "designer": 1e-2},
    kl_coefficient={"agent": 0.1, "designer": 0.1},
)


def adapted(policy, seed=0, targets=("all-linear",)):
    return policy.with_model(
        with_lora(copy.deepcopy(policy.model), rank=4, alpha=8, targets=targets, seed=seed)
    )


def batch_of(policy, step=0):
    rng = np.random.default_rng(step)
    prompts = [rng.integers(5, 300, 9).tolist() for _ in range(8)]
    replies = policy.generate(prompts, Sampling(max_tokens=8), range(8))
    rows = []
    for i, (prompt, reply) in enumerate(zip(prompts, replies, strict=True)):
        sample = Conversation()
        sample.hear(prompt)
        sample.speak(reply)
        role = "agent" if i < 6 else "designer"
        rows.append(
            TrainRow.of(sample, role=role, advantage=rng.normal(), version=step, sample_id=str(i))
        )
    return TrainBatch(rows, step)


def weights(model):
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


def test_a_step_moves_adapters_and_leaves_the_base_as_it_was(small_policy):
    base = weights(small_policy.model)
    policy = adapted(small_policy)
    fresh = policy.generate([[5, 6, 7]], Sampling(max_tokens=8), [1])[0]
    plain = small_policy.generate([[5, 6, 7]], Sampling(max_tokens=8), [1])[0]
    assert fresh.token_ids == plain.token_ids  # new adapters say nothing yet
    before = weights(policy.model)
    learner = TorchLearner(policy.model, SETTINGS)
    assert learner.reference is None
    assert all("lora_" in name for name in learner.parameters)
    assert learner.update(batch_of(policy))["kl"] == 0.0
    assert learner.update(batch_of(policy, 1))["kl"] > 0.0  # measured with the adapters off
    after = weights(policy.model)
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved
    assert all("lora_" in name for name in moved)
    inside = {name.replace("base_model.model.", "").replace(".base_layer", ""): p
              for name, p in after.items() if "lora_" not in name}  # fmt: skip
    assert same(base, inside)


def test_adapters_are_saved_alone_and_resume_bit_for_bit(small_policy, tmp_path):
    policy = adapted(small_policy)
    learner = TorchLearner(policy.model, SETTINGS)
    learner.update(batch_of(policy))
    learner.save(tmp_path)
    batch = batch_of(policy, 1)
    learner.update(batch)

    again = adapted(small_policy)
    resumed = TorchLearner(again.model, SETTINGS)
    resumed.load(tmp_path)
    assert resumed.version == 1
    resumed.update(batch)
    assert same(weights(policy.model), weights(again.model))
    size = sum(p.numel() for p in learner.parameters.values())
    assert (tmp_path / WEIGHTS).stat().st_size < 4 * size + 20_000


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")
def test_a_checkpoint_is_a_folder_that_peft_loads(small_policy, tmp_path):
    from peft import PeftModel

    policy = adapted(small_policy)
    learner = TorchLearner(policy.model, SETTINGS)
    learner.update(batch_of(policy))
    learner.save(tmp_path)
    loaded = PeftModel.from_pretrained(copy.deepcopy(small_policy.model), str(tmp_path))
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        expected = policy.model(input_ids=ids).logits
        assert torch.equal(loaded(input_ids=ids).logits, expected)
        assert not torch.equal(small_policy.model(input_ids=ids).logits, expected)


def test_the_seed_decides_where_adapters_begin(small_policy):
    first, second = weights(adapted(small_policy).model), weights(adapted(small_policy).model)
    assert same(first, second)
    assert not same(first, weights(adapted(small_policy, seed=1).model))


def test_layers_that_the_model_does_not_have_are_named(small_policy):
    with pytest.raises(ConfigError, match=r"lora_targets=\['q_prj'\] fits no layer.*q_proj"):
        adapted(small_policy, targets=["q_prj"])
    chosen = TorchLearner(adapted(small_policy, targets=["q_proj"]).model, SETTINGS)
    assert all("q_proj" in name for name in chosen.parameters)
