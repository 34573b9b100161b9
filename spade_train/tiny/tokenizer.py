"""The embedded policy's own tokenizer: phrases of its world as single tokens, bytes for the rest.

A Unigram model picks the split with the fewest pieces. Pieces are lines of the families' sources
(cut where something varies), words with the space before them, the numbers 0 to 99, common words of
the corpus, all printable ASCII characters and all bytes: any text encodes, and a design takes some
hundred tokens. Varying parts (numbers, operations, settings) never melt into their surroundings,
which is what makes copying them learnable.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

from spade_runtime.taxonomy import GAME_SKILLS, TOOL_SKILLS
from spade_train.tiny import lexicon
from spade_train.tiny.families import FAMILIES, blocks

PAD, END = "<|pad|>", "<|end|>"
ROLES = ("system", "user", "assistant", "tool")
SPECIAL = (PAD, END, *(f"<|{role}|>" for role in ROLES))

CHAT_TEMPLATE = """\
{%- if tools -%}
<|system|>Tools:
{%- for tool in tools -%}
{%- set f = tool.function if tool.function is defined else tool -%}
{{ ' ' + f.name }}({{ f.parameters.properties.keys() | join(', ') }})
{%- endfor -%}
<|end|>
{%- endif -%}
{%- for message in messages -%}
<|{{ message.role }}|>{{ message.content if message.content else '' }}
{%- for call in message.tool_calls or [] -%}
{%- set f = call.function if call.function is defined else call -%}
<tool_call>{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}}</tool_call>
{%- endfor -%}
<|end|>
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}
"""

# Score of pieces that plain text must never become: special tokens, and bytes by name.
NEVER = -1000.0

# Where a line is cut into pieces: at what varies, and after the words that open an expression.
_SLOT = re.compile(
    r" ?\$(?:theme|options|op|rounds|limit|rank|shift)\b|\$(?:cls|skill|pair|pool|lead)\b"
)
_JOINT = re.compile(r"(?<==)(?= )|(?<=return)(?= )|(?<= in)(?= )(?=.*:$)|(?<=if)(?= )")

# A step rule is one token, as an order rule is: a hint is then one thing to look up, not three.
STEP_RULES = tuple(f" {lexicon.rule_text(op)}" for op in lexicon.STEP_OPS)

# What observations, hints, calls and prompts are made of beside the sources' lines.
PHRASES = (
    "The", "In the", "Now", " you", " at the", " and", ". Pick:", ". Choose:", ". Options:",
    "Over.", "Solved.", "Wrong.", "Sent.", "Sent to", "Unlocked", "\n\nHint:", "Hint:",
    " Here", " The", " With", "Here", "With", " means", " gives", " go", " take", ".",
    " forward", " back", " step", " steps", *STEP_RULES, " the largest", " the smallest",
    " the second largest", " the second smallest", " the sum without tens",
    '<tool_call>{"name": "', '", "arguments": {"', '":', ' "', '"}}</tool_call>', "}}</tool_call>",
    "send", "unlock", "box", "gate", " options.", "Tools:", " send(", " unlock(", ")",
    "```python", "\n```", "```", "\n", "\n\n", "    ", ": ", ", ",
)  # fmt: skip


def _line_pieces() -> Iterable[str]:
    for family in FAMILIES:
        base = "ToolEnv" if family.kind == "tool_use" else "TextEnv"
        yield f"\nclass {family.cls}({base}):"
        yield f"class {family.cls}({base}):"
        yield family.pool
    for variant in (text for block in blocks.ALL_BLOCKS for text in block):
        for line in variant.strip("\n").split("\n"):
            if not line or line.startswith("class "):
                continue
            method = re.match(r"    (def|@)", line)
            segments = _SLOT.split(line)
            for position, segment in enumerate(segments):
                parts = _JOINT.split(segment)
                if position == 0:
                    parts[0] = f"\n{parts[0]}"
                    if method:
                        yield f"\n{parts[0]}"
                yield from parts
    yield from ("max(one, two)", "min(one, two)", "(one + two) % 10")
    yield from (" {clue}", " {one} and {two}", " +", " -")


def _words() -> Iterable[str]:
    words = (
        *lexicon.THEMES,
        *lexicon.NEW_THEMES,
        *lexicon.BY_WORD,
        *lexicon.STEP_WORDS,
        *lexicon.POINTS,
        *lexicon.COLOURS,
        *lexicon.LETTERS,
        *(str(number) for number in range(100)),
    )
    for word in words:
        yield word
        yield f" {word}"
    yield from GAME_SKILLS
    yield from TOOL_SKILLS


def common_words(texts: Iterable[str], count: int) -> list[str]:
    """Return the words, with the space before them, that are most frequent in some texts."""
    seen = Counter(
        f" {word}" for text in texts for word in re.findall(r"(?<= )[A-Za-z][a-z]{1,13}", text)
    )
    return [word for word, _ in sorted(seen.items(), key=lambda item: (-item[1], item[0]))][:count]


def prompt_pieces(templates: Iterable[str]) -> list[str]:
    """Return the lines of prompt templates, cut at `{fields}` and `$fields`."""
    found: list[str] = []
    for text in templates:
        for position, line in enumerate(text.split("\n")):
            for place, part in enumerate(re.split(r"\{\w*\}|\$\{?\w+\}?", line)):
                found += [part, "\n" + part] if position and not place else [part]
    return found


def build_tokenizer(
    corpus: Iterable[str] = (), templates: Iterable[str] = (), words: int = 400
) -> Any:
    """Build the tokenizer.

    Args:
        corpus: texts whose most frequent words become pieces.
        templates: prompt templates whose lines become pieces.
        words: how many words of the corpus to take.

    Returns:
        A `transformers.PreTrainedTokenizerFast` with its chat template.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    pieces = [*_line_pieces(), *PHRASES, *_words(), *prompt_pieces(templates)]
    pieces += common_words(corpus, words)
    single = set(string.printable[:95] + "\n\t")
    phrases = [piece for piece in dict.fromkeys(pieces) if len(piece) > 1]
    letters = sorted(single)
    vocabulary = [(token, NEVER) for token in (*SPECIAL, "<unk>")]
    vocabulary += [(f"<0x{byte:02X}>", NEVER) for byte in range(256)]
    vocabulary += [(letter, -2.0) for letter in letters]
    vocabulary += [(piece, -1.0) for piece in phrases]
    core = Tokenizer(models.Unigram(vocabulary, unk_id=len(SPECIAL), byte_fallback=True))
    core.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    core.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        eos_token=END,
        unk_token="<unk>",
        model_max_length=4096,
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )


def shipped_templates() -> list[str]:
    """Return the compact prompt templates, whose lines deserve tokens of their own."""
    folder = files("spade_train").joinpath("prompts/compact")
    return [entry.read_text("utf-8") for entry in sorted(Path(str(folder)).glob("*.txt"))]
