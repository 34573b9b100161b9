"""Hints: one text an environment, for every seed; a rule or an approach, never the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from spade_train.designer import without_thinking

MAX_SENTENCES = 3
MAX_WORDS = 99
# A text without spaces is one word.
MAX_CHARS = 1200
LEAK = "SPD705"

_LABEL = re.compile(r"^[*_#\s]{0,4}(?:the\s+)?hint[*_]{0,2}\s*[:\-][*_\s]*", re.IGNORECASE)
_FENCE_LINE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
_QUOTES = ("\"'", "“”", "‘’", "**", "``")
# A sentence ends at a mark before a space and something that can begin a sentence: 3.5 and "e.g. x"
# are not ends.
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|cf|vs|approx|no)\.$", re.IGNORECASE)


class Hint(NamedTuple):
    """A hint that may be shown, or why the text can't be.

    Attributes:
        text: the cleaned hint, None where it was refused.
        reason: empty where there is a hint; otherwise what to change, fit for the next prompt.
    """

    text: str | None
    reason: str = ""


def sentences(text: str) -> list[str]:
    """Part a text into its sentences.

    >>> sentences("Add 3.5 to it. Then halve it, e.g. by two.")
    ['Add 3.5 to it.', 'Then halve it, e.g. by two.']
    """
    found: list[str] = []
    for piece in _END.split(text.strip()):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] += " " + piece
        elif piece:
            found.append(piece)
    return found


def clean_hint(text: str) -> Hint:
    """Strip what surrounds a hint, and hold it to 1 to 3 sentences of fewer than 100 words.

    A text without spaces is held to `MAX_CHARS` characters.

    >>> clean_hint('Hint: "Sum the row first."')
    Hint(text='Sum the row first.', reason='')
    >>> clean_hint("").reason
    'the hint is empty'
    """
    visible = without_thinking(text)
    if not visible.strip():
        return Hint(None, "the hint is empty" if not text.strip() else "the hint is only thinking")
    plain = " ".join(_FENCE_LINE.sub("", visible).split())
    plain = _unquote(_LABEL.sub("", _unquote(plain)))
    if not re.search(r"\w", plain):
        return Hint(None, "the hint is empty")
    words = len(plain.split())
    if words > MAX_WORDS:
        return Hint(None, f"the hint has {words} words; write fewer than {MAX_WORDS + 1}")
    if len(plain) > MAX_CHARS:
        return Hint(None, f"the hint has {len(plain)} characters; write {MAX_CHARS} at most")
    count = len(sentences(plain))
    if count > MAX_SENTENCES:
        return Hint(None, f"the hint has {count} sentences; write {MAX_SENTENCES} at most")
    return Hint(plain)


def leaks(findings: Sequence[Any]) -> list[str]:
    """Return what a validator's findings say against a hint: the messages of SPD705."""
    return [finding.message for finding in findings if finding.code == LEAK]


def judge_hint(text: str, findings: Sequence[Any] = ()) -> Hint:
    """Clean a hint and refuse it where the validator found that it gives the answer away.

    Args:
        text: what the model wrote.
        findings: the validator's findings about the environment with this hint.
    """
    hint = clean_hint(text)
    found = leaks(findings)
    if hint.text is None or not found:
        return hint
    return Hint(None, f"the hint gives the answer away: {found[0]}")


def _unquote(text: str) -> str:
    stripped = text.strip()
    for marks in _QUOTES:
        first, last = marks[0], marks[-1]
        if first == '"' and len(stripped) > 1 and stripped[0] == stripped[-1] in marks:
            return stripped[1:-1].strip()
        if len(stripped) > 1 and stripped[0] == first and stripped[-1] == last and first != last:
            return stripped[1:-1].strip()
        doubled = first == last and stripped.startswith(marks) and stripped.endswith(marks)
        if doubled and len(stripped) > 2 * len(marks):
            return stripped[len(marks) : -len(marks)].strip()
    return stripped
