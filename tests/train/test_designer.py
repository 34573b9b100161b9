import pytest

from spade_train.designer import extract_source, without_thinking

CODE = "class HopEnv:\n    pass\n"


def fenced(code=CODE, info="python"):
    return f"```{info}\n{code}```"


@pytest.mark.parametrize(
    "text",
    [
        fenced(),
        fenced(info=""),
        fenced(info="py"),
        f"Here it is:\n\n{fenced()}\n\nEnjoy.",
        f"<think>{fenced('class OldEnv: pass')}\n</think>\n{fenced()}",
        f"{fenced('class DraftEnv: pass' + chr(10))}\nBetter:\n{fenced()}",
        f"{fenced()}\n```python\nclass CutEnv:\n",
        fenced().replace("\n", "\r\n"),
        f"~~~python\n{CODE}~~~",
        f"````python\n{CODE}````",
        f"{fenced()}\n```\n```",
        f"a</think>b<think>c</think>{fenced()}",
        f"<think>\n```python\nclass OldEnv:\n```</think>\n{fenced()}",
    ],
)
def test_the_last_complete_block_counts(text):
    assert extract_source(text) == (CODE, "")


@pytest.mark.parametrize(
    "line",
    [
        "    text = '</think>'",
        "    text = '<think>'",
        "    text = '<think> a </think> b'",
        '    text = """\n</think>\n"""',
    ],
)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("<think>a class, in ```python</think>", ""),
        ("a class</think>", ""),
        ("```\nthe plan\n```\n", ""),
        ("", "\nA play:\n"),
    ],
)
def test_marks_of_thinking_inside_a_block_are_code(line, before, after):
    code = f"class HopEnv:\n{line}\n"
    assert extract_source(f"{before}{fenced(code)}{after}") == (code, "")


def test_a_block_that_a_thought_leaves_open_ends_with_it():
    assert extract_source(f"First:\n```python\nclass OldEnv:\n</think>{fenced()}").source == CODE
    assert extract_source(f"<think>\n```\nclass OldEnv:\n</think>\n{fenced()}").source == CODE
    assert extract_source(f"{fenced()}</think>I'd rather not.").source is None


def test_a_longer_fence_holds_a_shorter_one():
    code = 'class HopEnv:\n    text = """\n```\nmap\n```\n"""\n'
    assert extract_source(f"````python\n{code}````").source == code


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the answer is empty"),
        (" \n", "the answer is empty"),
        ("<think>hm, a class</think>", "the answer is only thinking"),
        (f"<think>never closed\n{fenced()}", "the answer is only thinking"),
        ("I can't help with that.", "no code block in the answer"),
        ("```python\nclass CutEnv:\n    def reset", "the answer was cut"),
        ("```\n```", "no code block in the answer"),
        (f"class HopEnv stands here\n{CODE}", "no code block in the answer"),
    ],
)
def test_without_code_there_is_a_reason(text, reason):
    found = extract_source(text)
    assert found.source is None
    assert reason in found.reason


def test_bare_code_counts_only_where_it_is_asked_for():
    assert extract_source(CODE, bare=True).source == CODE
    assert extract_source("I refuse.", bare=True).source is None
    assert extract_source(f"<think>x</think>{CODE}", bare=True).source == CODE


def test_a_megabyte_is_read():
    code = "x = 1\n" * 170_000
    assert extract_source(fenced(code)).source == code
    assert extract_source("`" * 1_000_000).source is None


def test_thinking_is_left_out():
    assert without_thinking("<think>a</think>b<think>c") == "b"
