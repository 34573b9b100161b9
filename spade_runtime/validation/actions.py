"""What the step gate says to a game: text of every kind, and text made from what the game says.

An agent may write anything, so anything is tried. Branches that lie deep are reached with commands
that an observation names, and with the actions of the reference solution, whole and spoilt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_QUOTED = re.compile(
    r"(?<![A-Za-z0-9])'([^'\n]{1,60})'(?![A-Za-z0-9])"
    r'|"([^"\n]{1,60})"|`([^`\n]{1,60})`|\u201c([^\u201d\n]{1,60})\u201d'
    r"|\\boxed\{([^{}\n]{1,60})\}"
)
_WORD = re.compile(r"[^\W_](?:[\w'-]*\w)?", re.UNICODE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_PLACEHOLDER = re.compile(
    r"<[^<>]{1,20}>|\{[^{}]{1,20}\}|\[[^\[\]]{1,20}\]|\b[A-Z]{1,12}\b(?:\.\.+)?"
)
_STOP_TEXT = (
    "a an and are as at be by can do each for from has have in is it its may n of on one or that "
    "the then they this to two was what when which with you your"
)
_STOP = frozenset(_STOP_TEXT.split(" "))

UNKNOWN = "zzqx"
DIGITS = "7" * 5000
SUPERSCRIPT = "\u00b2"
"""`isdigit` holds for it, and `int` does not read it."""

FIXED: tuple[str, ...] = (
    "",
    "   ",
    "\n\t ",
    "0",
    "1",
    "-1",
    "3.5",
    "1e400",
    "999999999999",
    DIGITS,
    UNKNOWN,
    "yes",
    "no",
    "help",
    "done",
    "a",
    "\u00df\u00e9\u4e2d\U0001f600 \u0663",
    SUPERSCRIPT,
    "nan",
    "None",
    '{"action": "go", "n": [1, {"x": null}]}',
    "[1, 2, 3]",
    "\\boxed{1}",
    "\\boxed{",
    "1 2",
    "1,2,3",
    "a b c d e f g h i j",
    "%s %d {0} {name} \\",
    "'; drop table x; --",
    "= : ; | / \\ . , ( ) [ ] { }",
    "x" * 3000,
    "word " * 600,
    # What a pattern with a repeat inside a repeat backtracks on: long, and wrong at the end.
    "a1 " * 20 + "!",
    "a" * 60 + "!",
    "1" * 60 + "!",
    "1," * 40 + "x",
    # What a parser that calls itself descends into.
    "(" * 3000,
    "[" * 3000,
    "nul \x00 nul",
)
"""Actions that are tried in every game."""


def quoted(text: str) -> list[str]:
    r"""Commands that a text puts in quotes or in a box, in order and each once.

    >>> quoted("Say 'look ROOM' or \"stop\"; it's late.")
    ['look ROOM', 'stop']
    """
    found = (next(part for part in hit.groups() if part) for hit in _QUOTED.finditer(text))
    return list(dict.fromkeys(part.strip() for part in found if part.strip()))


def words(text: str) -> list[str]:
    """Words and numbers of a text, in order and each once.

    >>> words("Row 3: gulls, and gulls.")
    ['Row', '3', 'gulls', 'and']
    """
    return list(dict.fromkeys(_WORD.findall(text)))


def numbers(text: str) -> list[str]:
    """Numbers of a text, in order.

    >>> numbers("from -3 to 4.5")
    ['-3', '4.5']
    """
    return _NUMBER.findall(text)


def content_words(text: str) -> list[str]:
    """Words of a text that are likely to name something."""
    return [word for word in words(text) if word.lower() not in _STOP]


def _pieces(text: str) -> list[str]:
    """What may fill a command's placeholder: names in lists first, then other words."""
    listed = re.findall(r"[:,]\s*([^\W\d_][\w'-]*)(?=\s*[,.;\n)]|\s+or\b|\s+and\b|$)", text)
    return list(dict.fromkeys([*listed, *content_words(text)]))


def fill(command: str, value: str) -> str:
    """A command with its placeholders (NAME, N, <name>, {name}) replaced by a value.

    >>> fill("move NAME to <place>", "x"), fill("look", "x")
    ('move x to x', 'look')
    """
    return _PLACEHOLDER.sub(lambda _: value, command)


def has_placeholder(command: str) -> bool:
    """Whether a command has something to fill in (a command of capitals alone has not)."""
    return fill(command, "") != command and bool(fill(command, "").strip())


def from_text(text: str, limit: int = 60) -> list[str]:
    """Actions made of what an observation says: its commands, filled and bare, and its words."""
    made: dict[str, None] = {}
    pieces = _pieces(text)
    commands = quoted(text)
    for command in commands:
        made[command] = None
    for command in commands[:12]:
        made[command.split()[0]] = None
        made[f"{command.split()[0]} {UNKNOWN}"] = None
        if has_placeholder(command):
            values = [UNKNOWN, "1", "0", "-1", "2", "99999", SUPERSCRIPT, DIGITS, *pieces[:6]]
            made.update(dict.fromkeys(fill(command, value) for value in values))
        made[f"{command} {UNKNOWN}"] = None
    found = numbers(text)
    made.update(dict.fromkeys(found[:6]))
    made.update(dict.fromkeys(pieces[:12]))
    made.update(dict.fromkeys(f"{word} {UNKNOWN}" for word in pieces[:8]))
    made.update(dict.fromkeys(f"{word} 1" for word in pieces[:4]))
    return list(made)[:limit]


def combined(commands: Iterable[str], text: str, limit: int = 24) -> list[str]:
    """Known commands with the names of a new text.

    >>> combined(["go ROOM", "go hall"], "Doors: 'vault'.")
    ['go vault', 'go Doors']
    """
    verbs = dict.fromkeys(command.split()[0] for command in commands if " " in command.strip())
    names = list(dict.fromkeys([*quoted(text), *_pieces(text)]))[:8]
    made = dict.fromkeys(f"{verb} {name}" for name in names for verb in list(verbs)[:6])
    return list(made)[:limit]


def boxed_form(action: str) -> str:
    r"""An action as classes that parse for themselves are given it.

    >>> boxed_form("go"), boxed_form("\\boxed{go}")
    ('\\boxed{go}', '\\boxed{go}')
    """
    return action if "\\boxed" in action else f"\\boxed{{{action}}}"


def spoilt(action: str) -> list[str]:
    """Variants of an action that a solution takes: the verb kept, the rest wrong.

    >>> spoilt("move crate 3")[:3]
    ['move', 'move zzqx', 'move crate zzqx']
    """
    parts = action.split()
    variants: list[str] = []
    if len(parts) > 1:
        variants += [parts[0], f"{parts[0]} {UNKNOWN}"]
        variants.append(" ".join([*parts[:-1], UNKNOWN]))
        variants += [
            " ".join([*parts[:-1], value]) for value in ("0", "-1", "99999", SUPERSCRIPT, DIGITS)
        ]
        variants += [" ".join(parts[:-1]), " ".join([*parts, parts[-1]]), f"{parts[0]}  "]
        if len(parts) > 2:
            variants.append(" ".join([parts[0], UNKNOWN, *parts[2:]]))
            variants.append(" ".join([parts[0], *parts[:0:-1]]))
    variants += [action.upper(), action[:-1], action[::-1], f"{action} {UNKNOWN}", action + ","]
    variants += [_bumped(action)]
    return [text for text in dict.fromkeys(variants) if text != action]


def _bumped(action: str) -> str:
    """An action with its last number one higher: nearly right."""
    hits = list(re.finditer(r"\d{1,12}", action))
    if not hits:
        return action
    last = hits[-1]
    return f"{action[: last.start()]}{int(last.group()) + 1}{action[last.end() :]}"


def probes(
    observations: Iterable[str],
    solution: Sequence[str] = (),
    limit: int = 96,
    *,
    boxes: bool = False,
) -> list[str]:
    r"""All single actions to try, the fixed ones first.

    Args:
        observations: texts that the game showed.
        solution: actions of a reference solution.
        limit: how many besides the fixed ones.
        boxes: the class reads `\boxed{action}` by itself, so most are said so as well.
    """
    made: dict[str, None] = {}
    for action in solution[:12]:
        made[action] = None
    for action in list(dict.fromkeys(solution))[:6]:
        made.update(dict.fromkeys(spoilt(action)))
    for text in observations:
        made.update(dict.fromkeys(from_text(text)))
    if boxes:
        made = dict.fromkeys([boxed_form(action) for action in (*made, *FIXED)])
    chosen = [action for action in made if action not in FIXED][:limit]
    return [*FIXED, *chosen]
