"""A run's model after training: from its folder or a checkpoint's, wherever a model is named."""

import shutil

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from spade_envs.agents import AgentSettings, make_agent  # noqa: E402
from spade_runtime.errors import UsageError  # noqa: E402
from spade_train import trained  # noqa: E402
from spade_train.assemble import assembled, load_policy  # noqa: E402
from spade_train.errors import CheckpointError, PolicyError  # noqa: E402
from spade_train.loop import train  # noqa: E402
from spade_train.policies.hf import HFPolicy  # noqa: E402
from spade_train.presets import resolve  # noqa: E402
from spade_train.run_folder import RunFolder  # noqa: E402

pytestmark = pytest.mark.usefixtures("isolation")


def go(path, words, policy, **changes):
    """Run to the end; returns the folder and the weights that training ended with."""
    config = resolve("tiny", overrides=words(path, **{"steps": 2, **changes}))
    folder = RunFolder.create(path, config)
    with folder.locked(), assembled(config, folder, policy=policy) as run:
        train(run)
        return folder, {n: p.detach().clone() for n, p in run.learner.model.named_parameters()}


@pytest.fixture(scope="module")
def plain(forced, words, tmp_path_factory):
    return go(tmp_path_factory.mktemp("plain") / "run", words, forced())


@pytest.fixture(scope="module")
def adapted(forced, words, tmp_path_factory):
    path = tmp_path_factory.mktemp("adapted") / "run"
    return go(path, words, forced(), steps=1, lora_rank=4)


def weights(policy):
    return dict(policy.model.named_parameters())


def equal(found, expected):
    return found.keys() == expected.keys() and all(
        torch.equal(found[name], expected[name]) for name in expected
    )


def test_a_run_gives_the_weights_that_its_training_ended_with(plain, model_folder):
    folder, expected = plain
    policy = HFPolicy.load(folder.path)
    assert policy.name == "run-step-000002"
    assert equal(weights(policy), expected)
    assert not equal(weights(HFPolicy.load(model_folder)), expected)
    earlier = HFPolicy.load(folder.checkpoints / "step-000001")
    assert not equal(weights(earlier), expected)


def test_lora_weights_come_as_adapters_and_become_part_of_what_trains_next(
    adapted, words, tmp_path, model_folder
):
    folder, expected = adapted
    policy = HFPolicy.load(folder.path)
    assert equal(weights(policy), expected)
    config = resolve("tiny", overrides=words(tmp_path / "next", model=folder.path))
    merged = load_policy(config)
    names = set(weights(HFPolicy.load(model_folder)))
    assert set(weights(merged)) == names
    assert all(p.requires_grad for p in merged.model.parameters())
    ids = torch.tensor([policy.encode_chat([{"role": "user", "content": "Where to?"}])])
    with torch.inference_mode():
        ours, theirs = (one.model(input_ids=ids).logits for one in (merged, policy))
    assert torch.allclose(ours, theirs, atol=1e-4)


def test_an_agent_of_a_run_plays_behind_the_prompts_of_the_run(plain):
    folder, _ = plain
    for name in (str(folder.path), f"tiny:{folder.path}", f"hf:{folder.checkpoints}/step-000002"):
        agent = make_agent(name, AgentSettings(max_tokens=4))
        assert (agent.name, agent.style) == ("run-step-000002", "compact")


def test_a_run_goes_on_from_anothers_weights(plain, forced, words, tmp_path):
    folder, expected = plain
    config = resolve("tiny", overrides=words(tmp_path / "next", model=folder.path))
    assert equal(weights(load_policy(config)), expected)
    assert trained.origin(str(folder.path)) == str(config_model(folder))


def config_model(folder):
    found = trained.find(folder.path)
    assert found is not None
    return found.config.model


def copied(folder, tmp_path):
    return RunFolder(shutil.copytree(folder.path, tmp_path / "copy"))


def test_a_damaged_checkpoint_is_refused(plain, tmp_path):
    folder = copied(plain[0], tmp_path)
    with (folder.checkpoints / "step-000002" / "weights.safetensors").open("r+b") as file:
        file.seek(200)
        file.write(b"\xff\xff\xff\xff")
    with pytest.raises(CheckpointError, match=r"is damaged: weights.safetensors has SHA-256"):
        HFPolicy.load(folder.path)
    assert HFPolicy.load(folder.checkpoints / "step-000001").name == "copy-step-000001"


def test_a_checkpoint_without_its_run_is_refused(plain, tmp_path):
    place = shutil.copytree(plain[0].checkpoints / "step-000002", tmp_path / "step-000002")
    with pytest.raises(CheckpointError, match="a checkpoint without its run"):
        HFPolicy.load(place)


def test_a_run_before_its_first_checkpoint_is_refused(plain, tmp_path):
    folder = copied(plain[0], tmp_path)
    shutil.rmtree(folder.checkpoints)
    folder.checkpoints.mkdir()
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        HFPolicy.load(folder.path)


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("model: ", "model: ./nowhere # ", PolicyError, r"'./nowhere' can't be loaded"),
        ("model: ", "model: tiny # ", CheckpointError, "of another model than 'tiny'"),
        ("objective: ", "purpose: ", CheckpointError, "no run's configuration of this version"),
    ],
)
def test_a_run_of_another_model_or_kind_is_refused(plain, tmp_path, old, new, error, message):
    folder = copied(plain[0], tmp_path)
    text = folder.config_path.read_text(encoding="utf-8")
    folder.config_path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(error, match=message):
        HFPolicy.load(folder.path)


def test_adapters_beside_other_weights_are_refused(
    adapted, talker, make_tokenizer, model_folder, tmp_path
):
    other = tmp_path / "other"
    tokenizer = make_tokenizer()
    talker(tokenizer, seed=5).save_pretrained(other)
    tokenizer.save_pretrained(other)
    folder = copied(adapted[0], tmp_path)
    text = folder.config_path.read_text(encoding="utf-8")
    folder.config_path.write_text(text.replace(str(model_folder), str(other)), encoding="utf-8")
    with pytest.raises(CheckpointError, match="began from other weights than its model has now"):
        HFPolicy.load(folder.path)


def test_a_folder_of_the_usual_layout_is_no_run(model_folder, tmp_path):
    assert trained.find(model_folder) is None
    assert trained.find(tmp_path) is None
    assert trained.find(tmp_path / "nowhere") is None


def test_a_build_of_ones_own_is_measured_on_the_embedded_policys_held_out_set(tmp_path):
    from spade_train.heldout import heldout_environments

    own = tmp_path / "own"
    own.mkdir()
    config = resolve("tiny", overrides=[f"model={own}"])
    with pytest.raises(UsageError, match="heldout=FOLDER"):
        heldout_environments(config)
    (own / "recipe.json").write_text("{}")
    assert trained.is_embedded(str(own)) and trained.is_embedded("tiny")
    shipped = heldout_environments(resolve("tiny", overrides=[]))
    assert heldout_environments(config) == shipped
