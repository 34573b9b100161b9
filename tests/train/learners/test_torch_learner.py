import copy
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from spade_train import loss  # noqa: E402
from spade_train.errors import CheckpointError  # noqa: E402
from spade_train.learners.base import TrainBatch, TrainRow  # noqa: E402
from spade_train.learners.gradients import Gradients, Share  # noqa: E402
from spade_train.learners.torch_learner import LearnerSettings, TorchLearner  # noqa: E402
from spade_train.policies.base import Sampling  # noqa: E402
from spade_train.tokens import Conversation  # noqa: E402

FAST = {"agent": 1e-2, "designer": 1e-2}


def rows_of(policy, count, sampling, role="agent", advantages=None, version=0):
    """Two turns each, sampled from the policy itself."""
    rng = np.random.default_rng(5)
    samples = [Conversation() for _ in range(count)]
    for sample in samples:
        sample.hear(rng.integers(5, 300, int(rng.integers(3, 20))).tolist())
    for turn in range(2):
        seeds = [1000 * turn + i for i in range(count)]
        replies = policy.generate([s.ids for s in samples], sampling, seeds)
        for sample, reply in zip(samples, replies, strict=True):
            sample.speak(reply)
            if not turn:
                sample.hear([9, 8, 7])
    if advantages is None:
        advantages = rng.normal(0, 1, count).tolist()
    return [
        TrainRow.of(s, role=role, advantage=a, version=version, sample_id=f"{role}-{i}")
        for i, (s, a) in enumerate(zip(samples, advantages, strict=True))
    ]


def plain_logprobs(model, row, temperature=1.0):
    """Log-probabilities of the sampled tokens, from one unpadded pass, over the kept sets."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([row.ids])).logits[0].double() / temperature
    found = []
    for place, bit in enumerate(row.loss_mask):
        if bit:
            line = logits[place - 1]
            kept = list(row.kept[place]) if row.kept else list(range(len(line)))
            found.append(float(line[row.ids[place]] - torch.logsumexp(line[kept], 0)))
    return np.array(found)


def numpy_loss(model, reference, rows, settings):
    losses = []
    for row in rows:
        logp = plain_logprobs(model, row, settings.temperature[row.role])
        behaviour = np.array(
            [x for x, bit in zip(row.behaviour_logprobs, row.loss_mask, strict=True) if bit]
        )
        losses.append(
            loss.token_losses(
                logp,
                logp,
                behaviour,
                row.advantage,
                logp_ref=plain_logprobs(reference, row, settings.temperature[row.role]),
                kl_coefficient=settings.kl_coefficient[row.role],
                weight_max=settings.importance_weight_max,
            )
        )
    return loss.aggregate(losses, [row.sample_id for row in rows])


@pytest.mark.parametrize("sampling", [Sampling(max_tokens=8), Sampling(0.6, 0.95, 20, 8)])
def test_the_loss_of_both_roles_is_that_of_the_numpy_reference(small_policy, make_model, sampling):
    reference = make_model(len(small_policy.tokenizer), seed=1)
    temperature = {"agent": sampling.temperature, "designer": sampling.temperature}
    settings = LearnerSettings(
        kl_coefficient={"agent": 0.01, "designer": 0.3}, temperature=temperature, micro_tokens=100
    )
    rows = rows_of(small_policy, 7, sampling) + rows_of(small_policy, 3, sampling, "designer")
    # Rows of one episode (a thinking model's turns) share one token mean.
    rows[1] = TrainRow(**{**rows[1].to_state(), "kept": rows[1].kept, "sample_id": "agent-0"})
    for row in rows[2:5]:  # a sampler that strayed: the weight must be truncated at 2
        strayed = zip(row.behaviour_logprobs, row.loss_mask, strict=True)
        row.behaviour_logprobs[:] = [x - bit for x, bit in strayed]
    expected = numpy_loss(small_policy.model, reference, rows, settings)
    found = TorchLearner(small_policy.model, settings, reference).update(TrainBatch(rows))
    assert found["loss/agent"] + found["loss/designer"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("sampling", [Sampling(max_tokens=16), Sampling(0.6, 0.95, 20, 16)])
def test_on_policy_weights_are_one(small_policy, sampling):
    rows = rows_of(small_policy, 12, sampling)
    settings = LearnerSettings(temperature={"agent": sampling.temperature, "designer": 1.0})
    metrics = TorchLearner(small_policy.model, settings).update(TrainBatch(rows))
    assert metrics["importance_weight_mean"] == pytest.approx(1.0, abs=1e-3)
    assert metrics["clip_fraction"] == 0.0
    assert metrics["kl"] == 0.0


def test_without_the_kept_sets_the_weight_would_be_the_kept_mass(small_policy):
    """Why kept sets are recorded: over the whole vocabulary the same rows have weights below 1."""
    sampling = Sampling(0.6, 0.95, 20, 16)
    rows = [
        TrainRow(**{**row.to_state(), "kept": None}) for row in rows_of(small_policy, 12, sampling)
    ]
    settings = LearnerSettings(temperature={"agent": 0.6, "designer": 1.0})
    metrics = TorchLearner(small_policy.model, settings).update(TrainBatch(rows))
    assert metrics["importance_weight_mean"] < 0.99


def test_two_minibatches_make_the_clip_bind(small_policy):
    rows = rows_of(small_policy, 16, Sampling(max_tokens=12))
    large = {"agent": 0.1, "designer": 0.1}
    one = LearnerSettings(learning_rate=large, minibatch_episodes=16)
    two = LearnerSettings(learning_rate=large, minibatch_episodes=8)
    twin = copy.deepcopy(small_policy.model)
    assert TorchLearner(twin, one).update(TrainBatch(rows))["clip_fraction"] == 0.0
    assert TorchLearner(small_policy.model, two).update(TrainBatch(rows))["clip_fraction"] > 0.0


def test_an_update_raises_what_was_good_and_lowers_what_was_bad(small_policy):
    rows = rows_of(small_policy, 8, Sampling(max_tokens=8), advantages=[1.0, -1.0] * 4)
    before = [plain_logprobs(small_policy.model, row).mean() for row in rows]
    settings = LearnerSettings(learning_rate={"agent": 1e-3, "designer": 1e-3}, weight_decay=0.0)
    TorchLearner(small_policy.model, settings).update(TrainBatch(rows))
    after = [plain_logprobs(small_policy.model, row).mean() for row in rows]
    gain = np.sign([row.advantage for row in rows]) * (np.array(after) - np.array(before))
    assert (gain > 0).all()


def test_each_role_has_its_own_adam_or_both_share_one(small_policy):
    rows = rows_of(small_policy, 6, Sampling(max_tokens=8))
    shared = TorchLearner(copy.deepcopy(small_policy.model), LearnerSettings())
    own = TorchLearner(small_policy.model, LearnerSettings(optimizer="per_role"))
    shared.update(TrainBatch(rows))
    own.update(TrainBatch(rows))
    assert list(shared.optimizers) == ["shared"]
    steps = {name: len(optimizer.state) for name, optimizer in own.optimizers.items()}
    assert steps["agent"] > 0
    assert steps["designer"] == 0


def test_gradients_are_clipped_by_role(small_policy):
    rows = rows_of(small_policy, 6, Sampling(max_tokens=8), advantages=[1e4] * 6)
    rows += rows_of(small_policy, 6, Sampling(max_tokens=8), "designer")
    learner = TorchLearner(small_policy.model, LearnerSettings(learning_rate=FAST))
    metrics = learner.update(TrainBatch(rows))
    assert metrics["grad_norm/agent"] > 10 > metrics["grad_norm/designer"] > 0
    # What reached Adam: the first moment is (1 - beta) times the sum of two clipped gradients.
    moments = [state["exp_avg"] for state in learner.optimizers["shared"].state.values()]
    assert float(torch.nn.utils.get_total_norm(moments)) <= 0.1 * 2.0 + 1e-6


@pytest.mark.parametrize("advantages", [[float("nan")] * 4, [1e30] * 4])
def test_a_bad_gradient_is_thrown_away_and_counted(small_policy, advantages):
    rows = rows_of(small_policy, 4, Sampling(max_tokens=8), advantages=advantages)
    before = copy.deepcopy(small_policy.model.state_dict())
    settings = LearnerSettings(learning_rate=FAST, skip_grad_norm=1e6)
    metrics = TorchLearner(small_policy.model, settings).update(TrainBatch(rows))
    assert metrics["guards/skipped_updates_agent"] == 1
    assert metrics["grad_norm/agent"] is None
    after = small_policy.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_the_reference_stays_and_the_kl_grows_from_zero(small_policy):
    rows = rows_of(small_policy, 6, Sampling(max_tokens=8))
    kl = {"agent": 0.05, "designer": 0.0}
    learner = TorchLearner(small_policy.model, LearnerSettings(FAST, kl_coefficient=kl))
    frozen = copy.deepcopy(learner.reference.state_dict())
    assert learner.update(TrainBatch(rows))["kl/agent"] == pytest.approx(0.0, abs=1e-9)
    assert learner.update(TrainBatch(rows))["kl/agent"] > 1e-6
    after = learner.reference.state_dict()
    assert all(torch.equal(frozen[name], after[name]) for name in frozen)


def test_a_kl_without_first_weights_is_refused_and_not_taken_for_nothing(small_policy):
    """Held to the weights of now it would be 0 whatever they are."""
    held = LearnerSettings(kl_coefficient={"agent": 0.1, "designer": 0.0})
    learner = TorchLearner(small_policy.model, LearnerSettings())
    with pytest.raises(ValueError, match="a KL needs the first weights"):
        learner.configure(held)
    row = TrainRow("agent", [1, 2], [0, 1], [0.0, -1.0], None, 1.0, 0, "x")
    with pytest.raises(ValueError, match="a KL needs reference weights"):
        Gradients(small_policy.model).gradient(Share([row], [1.0], None), held)


def test_saved_and_loaded_the_next_update_is_the_same_bit_for_bit(
    small_policy, make_model, tmp_path
):
    settings = LearnerSettings(
        FAST,
        optimizer="per_role",
        minibatch_episodes=4,
        kl_coefficient={"agent": 0.1, "designer": 0},
    )
    rows = rows_of(small_policy, 8, Sampling(max_tokens=8))
    learner = TorchLearner(small_policy.model, settings)
    learner.update(TrainBatch(rows, step=0))
    learner.save(tmp_path)
    twin = TorchLearner(make_model(len(small_policy.tokenizer)), settings)  # the same seed
    twin.load(tmp_path)
    assert twin.version == 1
    assert learner.update(TrainBatch(rows, step=1)) == twin.update(TrainBatch(rows, step=1))
    for mine, its in zip(learner.parameters.values(), twin.parameters.values(), strict=True):
        assert torch.equal(mine, its)


def test_a_damaged_or_foreign_checkpoint_is_one_clear_error(small_policy, make_model, tmp_path):
    learner = TorchLearner(small_policy.model, LearnerSettings())
    with pytest.raises(CheckpointError, match="can't be read"):
        learner.load(tmp_path)
    learner.save(tmp_path)
    other = TorchLearner(make_model(77), LearnerSettings())
    with pytest.raises(CheckpointError, match="another model"):
        other.load(tmp_path)
    file = tmp_path / "weights.safetensors"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(CheckpointError, match="can't be read"):
        learner.load(tmp_path)


def test_a_short_last_minibatch_is_spread_over_the_others(small_policy):
    learner = TorchLearner(small_policy.model, LearnerSettings(minibatch_episodes=192))
    row = TrainRow("agent", [1, 2], [0, 1], [0.0, -1.0], None, 1.0, 0, "")
    rows = [TrainRow(**{**row.to_state(), "sample_id": str(i)}) for i in range(408)]
    parts = list(learner._minibatches(rows, step=3))
    assert [len(part) for part in parts] == [204, 204]
    assert sorted(r.sample_id for part in parts for r in part) == sorted(map(str, range(408)))
    assert list(learner._minibatches(rows, step=3)) == parts
    assert list(learner._minibatches(rows, step=4)) != parts


def test_tokens_that_went_through_are_counted_for_the_ledger(small_policy):
    rows = rows_of(small_policy, 8, Sampling(max_tokens=8), advantages=[1.0, -1.0] * 4)
    rows += rows_of(small_policy, 4, Sampling(max_tokens=8), "designer", advantages=[0.0] * 4)
    kl = {"agent": 0.0, "designer": 0.1}
    settings = LearnerSettings(minibatch_episodes=6, kl_coefficient=kl)
    metrics = TorchLearner(small_policy.model, settings).update(TrainBatch(rows))
    read = {role: sum(len(r.ids) for r in rows if r.role == role) for role in ("agent", "designer")}
    assert metrics["trained_tokens/agent"] == read["agent"]
    assert metrics["trained_tokens/designer"] == read["designer"]
    assert 0 < metrics["forward_tokens/agent"] < read["agent"]  # the second minibatch's old ones
    assert metrics["forward_tokens/designer"] > read["designer"]  # those, and the reference's


def test_nothing_to_train_on_changes_nothing(small_policy):
    learner = TorchLearner(small_policy.model, LearnerSettings())
    assert learner.update(TrainBatch([])) == {}
    assert learner.version == 0
    silent = TrainRow("agent", [1, 2], [0, 0], [0.0, 0.0], None, 1.0, 0, "x")
    assert learner.update(TrainBatch([silent])) == {}


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing.:FutureWarning")  # peft's call
def test_lora_trains_the_adapters_and_keeps_the_base_as_reference(small_policy):
    peft = pytest.importorskip("peft")
    base = copy.deepcopy(small_policy.model.state_dict())
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    small_policy.model = peft.get_peft_model(small_policy.model, config).eval()
    small_policy = small_policy.with_model(small_policy.model)
    settings = LearnerSettings(FAST, kl_coefficient={"agent": 0.1, "designer": 0.0})
    learner = TorchLearner(small_policy.model, settings)
    assert all("lora" in name for name in learner.parameters)
    rows = rows_of(small_policy, 4, Sampling(max_tokens=8))
    first, second = learner.update(TrainBatch(rows)), learner.update(TrainBatch(rows))
    assert math.isclose(first["kl/agent"], 0.0, abs_tol=1e-9)
    assert second["kl/agent"] > 0
    inner = small_policy.model.get_base_model().state_dict()
    frozen = {name.replace("base_layer.", ""): v for name, v in inner.items() if "lora" not in name}
    assert all(torch.equal(value, frozen[name]) for name, value in base.items())
