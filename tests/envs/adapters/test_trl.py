"""TRL: its own GRPO trainer plays our environments, with what the policy says written down."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spade_envs import suite
from spade_envs.adapters import trl as adapter
from spade_runtime.errors import UsageError

needs_trl = pytest.mark.skipif(
    importlib.util.find_spec("trl") is None, reason="the extra train (trl) is not installed"
)
RAISING = """\
class BrittleEnv(TextEnv):
    "Breaks at the first step."
    skill = "optimization"
    def reset(self, seed=None):
        return "Say something.", {}
    def step(self, action):
        return "well", 1 / 0, True, False, {}
"""


def offered(rollout: Any) -> dict[str, Any]:
    """What TRL offers to the model: the public methods, without its own two."""
    members = inspect.getmembers(type(rollout), predicate=inspect.isfunction)
    names = [name for name, _ in members if name not in ("reset", "get_reward")]
    return {name: getattr(rollout, name) for name in names if not name.startswith("_")}


def bare(schema: Any) -> Any:
    """A schema without what transformers does not write."""
    if isinstance(schema, dict):
        return {k: bare(v) for k, v in schema.items() if k not in ("default", "description")}
    return schema


@needs_trl
@pytest.mark.parametrize("name", suite.names())
def test_the_model_sees_the_schemas_of_the_tools(name: str) -> None:
    from transformers.utils import get_json_schema

    tools = list(suite.specs()[name].tools) or [adapter._ACT]
    found = [get_json_schema(tool) for tool in offered(adapter.environment(name)()).values()]
    seen = {row["function"]["name"]: row["function"] for row in found}
    assert set(seen) == {tool.name for tool in tools}
    for tool in tools:
        shown = seen[tool.name]["parameters"]
        properties = tool.parameters["properties"]
        assert bare(shown["properties"]) == {key: bare(one) for key, one in properties.items()}
        assert shown.get("required", []) == tool.parameters.get("required", [])
        assert all(one["description"] for one in shown["properties"].values())


def test_a_game_is_played_by_calls_of_act(solution_of: Callable[..., list[Any]]) -> None:
    rollout: Any = adapter.environment("spade/RollingDie-v0")()
    assert set(offered(rollout)) == {"act"}
    first = rollout.reset(seed=5, prompt="ignored")
    assert first == rollout.reset(seed=5) and rollout.get_reward() == 0.0
    *steps, last = solution_of("RollingDieEnv", 5)
    for action in steps:
        assert adapter.OVER not in rollout.act(action=action)
    assert rollout.act(action=f"surely \\boxed{{{last}}}").endswith(adapter.OVER)
    assert rollout.get_reward() == 1.0
    assert rollout.act(action="north") == adapter.OVER
    assert rollout.reset(seed=6) != first and rollout.get_reward() == 0.0


def test_a_tool_desk_reveals_its_instructions_call_by_call(
    solution_of: Callable[..., list[Any]],
) -> None:
    rollout: Any = adapter.environment("spade/MapRoom-v0", hinted=True)()
    assert "\n\nHint: " in rollout.reset(seed=3)
    calls = [one for message in solution_of("MapRoomEnv", 3) for one in message]
    told = []
    for call in calls:
        call = call.get("function", call)
        given = call["arguments"]
        given = json.loads(given) if isinstance(given, str) else given
        told.append(getattr(rollout, call["name"])(**given))
    assert sum("Next instruction: " in text for text in told) >= 2
    assert told[-1].endswith(adapter.OVER) and rollout.get_reward() == 1.0


def test_a_fault_ends_the_rollout_and_leaves_no_reward(tmp_path: Path) -> None:
    (tmp_path / "brittle.py").write_text(RAISING)
    rollout: Any = adapter.environment(str(tmp_path / "brittle.py"))()
    assert rollout.reset(seed=1) == "Say something."
    assert rollout.act(action="hm") == adapter.OVER
    assert rollout.get_reward() is None
    assert rollout.reset(seed=1) == "Say something." and rollout.get_reward() == 0.0


def test_what_can_not_be_is_refused() -> None:
    with pytest.raises(UsageError, match="no column seed.*rows"):
        adapter.environment("RollingDie")().reset(prompt=[])
    with pytest.raises(UsageError, match="did you mean 'spade/RollingDie-v0'"):
        adapter.environment("spade/RolingDie-v0")


def scripted(text: str, row: int, answers: dict[int, str]) -> str:
    """The policy's next words, after what it was shown: one right call, one wrong, then an end."""
    if "<tool_response>" in text:
        return "Done.<|im_end|>"
    seed = int(re.findall(r"task (\d+)", text)[0])
    action = answers[seed] if row % 2 == 0 else "1000000"
    call = json.dumps({"name": "act", "arguments": {"action": action}})
    return f"<tool_call>\n{call}\n</tool_call><|im_end|>"


def tiny() -> tuple[Any, Any]:
    """A model of two thin layers and a tokenizer of bytes, with Qwen3's chat template."""
    import trl
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE({letter: at for at, letter in enumerate(letters)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|pad|>"
    )
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    template = Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"
    tokenizer.chat_template = template.read_text("utf-8")
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=8192,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen3ForCausalLM(config), tokenizer


def one_step(folder: Path, **changes: Any) -> Any:
    """The arguments of a trainer that takes one step here and writes nothing."""
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=str(folder),
        max_steps=1,
        num_generations=2,
        per_device_train_batch_size=4,
        report_to=[],
        save_strategy="no",
        logging_steps=1,
        use_cpu=True,
        **changes,
    )


@needs_trl
@pytest.mark.filterwarnings("default")
def test_the_trainer_takes_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, solution_of: Callable[..., list[Any]]
) -> None:
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    import torch
    from datasets import Dataset
    from trl import GRPOTrainer

    torch.manual_seed(0)
    model, tokenizer = tiny()
    heard: list[str] = []

    class Scripted(GRPOTrainer):  # type: ignore[misc]
        """TRL's trainer, whose sampling is replaced by words that are known beforehand."""

        def _generate_single_turn(self, prompt_ids: Any, *_: Any, **__: Any) -> Any:
            texts = [tokenizer.decode(ids) for ids in prompt_ids]
            heard.extend(texts)
            said = [scripted(text, row, answers) for row, text in enumerate(texts)]
            return [tokenizer.encode(one) for one in said], None

    seeds = [11, 12]
    answers = {seed: solution_of("StampDrawerEnv", seed)[0] for seed in seeds}
    listed = [
        row
        for seed in seeds
        for row in adapter.rows(["spade/StampDrawer-v0"], [seed], prompt=f"task {seed}\n")
    ]
    trainer = Scripted(
        model=model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(listed),
        environment_factory=adapter.environment("spade/StampDrawer-v0"),
        args=one_step(tmp_path, max_completion_length=2048, shuffle_dataset=False),
    )
    before = {name: value.clone() for name, value in model.named_parameters()}
    trainer.train()
    log = trainer.state.log_history[0]
    assert log["rewards/StampDrawerEnv/mean"] == pytest.approx(0.5)
    assert log["rewards/StampDrawerEnv/std"] == pytest.approx(0.577, abs=0.01)
    assert log["tools/failure_frequency"] == 0.0 and log["tools/call_frequency"] == 1.0
    assert any(not torch.equal(value, before[name]) for name, value in model.named_parameters())
    assert sum("<tool_response>" in text for text in heard) == 4
    assert all("A drawer holds plenty of stamps" in text for text in heard)
    assert all(adapter.OVER in text for text in heard if "<tool_response>" in text)


@needs_trl
@pytest.mark.filterwarnings("default")
def test_a_run_may_mix_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    from datasets import Dataset
    from trl import GRPOTrainer

    names = ["spade/StampDrawer-v0", "spade/MapRoom-v0"]
    model, tokenizer = tiny()
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(adapter.rows(names, [1])),
        environment_factory=adapter.environments(names),
        args=one_step(tmp_path, max_completion_length=8),
    )
    trainer.train()
    log = trainer.state.log_history[0]
    assert log["rewards/StampDrawerEnv/mean"] == 0.0 and log["rewards/MapRoomEnv/mean"] == 0.0
