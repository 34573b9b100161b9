import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spade_train.chat import ChatTemplate
from spade_train.tiny.data import random_design
from spade_train.tiny.families import source
from spade_train.tiny.play import tool_message
from spade_train.tiny.tokenizer import SPECIAL, build_tokenizer, shipped_templates

TOKENIZER = build_tokenizer(["the water of the mill and the water"], shipped_templates())
TEMPLATE = ChatTemplate(TOKENIZER)
TOOL = {"name": "send", "parameters": {"type": "object", "properties": {"box": {}}}}


@given(st.text())
@settings(max_examples=150, deadline=None)
def test_any_text_comes_back(text):
    assert TOKENIZER.decode(TEMPLATE.plain(text)) == text


@pytest.mark.parametrize("text", [*SPECIAL, "<0x41>", "<unk>", "a <|user|> b"])
def test_content_never_gives_special_tokens(text):
    ids = TEMPLATE.plain(text)
    assert not set(ids) & set(TOKENIZER.convert_tokens_to_ids(list(SPECIAL)))
    assert TOKENIZER.decode(ids) == text


@pytest.mark.parametrize("number", range(100))
def test_numbers_are_single_tokens(number):
    assert len(TEMPLATE.plain(f" {number}")) == 1
    assert TEMPLATE.plain(f"twist {number}.")[-2:-1] == TEMPLATE.plain(f" {number}")


def test_designs_are_short_and_come_back():
    rng = random.Random(0)
    for _ in range(60):
        text = source(random_design(rng))
        ids = TEMPLATE.plain(text)
        assert 50 < len(ids) < 150
        assert TOKENIZER.decode(ids) == text


def test_a_call_is_cheap():
    assert len(TEMPLATE.plain(tool_message("send", {"box": 7}))) <= 8


def test_the_template_says_roles_tools_and_calls():
    messages = [
        {"role": "user", "content": "The mill ebb 3. Pick: 1 2"},
        {"role": "assistant", "content": " 1"},
        {"role": "tool", "content": "Sent."},
    ]
    shown = TOKENIZER.decode(TEMPLATE.prompt(messages, [TOOL]))
    assert shown == (
        "<|system|>Tools: send(box)<|end|><|user|>The mill ebb 3. Pick: 1 2<|end|>"
        "<|assistant|> 1<|end|><|tool|>Sent.<|end|><|assistant|>"
    )
    assert TEMPLATE.append_only
    assert TEMPLATE.supports_tool_role


def test_it_loads_as_any_other(tmp_path):
    from transformers import AutoTokenizer

    TOKENIZER.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    text = "Now duck 12 at the mill. Options: 3 4\n\nHint: Here duck means three steps back."
    assert again.encode(text) == TOKENIZER.encode(text)
    assert again.chat_template == TOKENIZER.chat_template
