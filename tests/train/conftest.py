from pathlib import Path

import pytest

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="session")
def make_tokenizer():
    """Builds a small byte-level tokenizer with the given special tokens and chat template."""

    def make(template=CHATML, special=("<|im_start|>", "<|im_end|>"), eos="<|im_end|>", markup=()):
        from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
        from transformers import PreTrainedTokenizerFast

        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=["<|endoftext|>", *special],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        text = Path(__file__).read_text(encoding="utf-8")
        tokenizer.train_from_iterator([text], trainer)
        tokenizer.add_tokens([AddedToken(word, special=False) for word in markup])
        fast = PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, eos_token=eos, pad_token="<|endoftext|>"
        )
        fast.chat_template = template
        return fast

    return make


@pytest.fixture(scope="session")
def make_model():
    """Builds a small, randomly initialised Qwen3; the same seed gives the same weights."""

    def make(vocabulary, seed=0, hidden=32, layers=2, context=512):
        import torch
        from transformers import Qwen3Config, Qwen3ForCausalLM

        torch.manual_seed(seed)
        config = Qwen3Config(
            vocab_size=vocabulary,
            hidden_size=hidden,
            intermediate_size=3 * hidden,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=hidden // 4,
            max_position_embeddings=context,
            tie_word_embeddings=True,
        )
        return Qwen3ForCausalLM(config).eval()

    return make


@pytest.fixture
def small_policy(make_tokenizer, make_model):
    """A random policy of some thirty thousand parameters, fresh for each test."""
    from spade_train.policies.hf import HFPolicy

    tokenizer = make_tokenizer()
    return HFPolicy(make_model(len(tokenizer)), tokenizer, name="small")
