"""What a reset is given, taken as what it must be or refused before anything changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from spade_envs.references import hint_behind
from spade_runtime.errors import UsageError

# Sixteen results of 16,384 characters and an instruction fit; one size for all environments lets
# any of them share a vector.
TEXT_MAX = 1 << 19
HINT_MAX = TEXT_MAX // 2  # what is left is more than a first observation may take


def checked_options(options: Any, known: Sequence[str]) -> dict[str, Any]:
    """Options of a reset, each of them known.

    Raises:
        UsageError: they are no dictionary, or one of them is unknown.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise UsageError(f"options is a dictionary or None, not {options!r:.80}")
    for name in options:
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            tell = f"did you mean {near[0]!r}?" if near else f"there are {' and '.join(known)}"
            raise UsageError(f"reset has no option {name!r:.80}; {tell}")
    return dict(options)


def checked_turns(limit: Any) -> int | None:
    """A limit in messages, or None.

    Raises:
        UsageError: it is no whole number, or less than 1.
    """
    if limit is not None and (type(limit) is not int or limit < 1):
        raise UsageError(f"max_turns is a whole number of at least 1, not {limit!r:.60}")
    return limit


def checked_hint(hint: Any) -> str:
    """A hint that somebody gives as text.

    Raises:
        UsageError: it is no text, a blank one, or one that the observation can't hold.
    """
    if not isinstance(hint, str):
        raise UsageError(f"a hint is a text or True, not {hint!r:.80}")
    if not hint.strip():
        raise UsageError("the hint is blank; give None, or no hint at all, for an episode without")
    if len(hint) > HINT_MAX:
        raise UsageError(f"a hint has at most {HINT_MAX:,} characters, not {len(hint):,}")
    try:
        hint.encode()
    except UnicodeEncodeError as problem:
        raise UsageError(
            f"the hint holds a lone surrogate at character {problem.start}; decode it with "
            "errors='replace' first"
        ) from None
    return hint


def chosen_hint(wanted: Any, reference: Mapping[str, Any]) -> str | None:
    """The hint that an option asks for.

    Args:
        wanted: a text; True for the one that comes with the environment; None or False for none.
        reference: where the environment is.

    Raises:
        UsageError: it is none of these, or there is none to be had.
    """
    if wanted is None or wanted is False:
        return None
    if wanted is not True:
        return checked_hint(wanted)
    hint = hint_behind(**reference)
    if hint is None:
        raise UsageError(
            "options={'hint': True} asks for the hint that comes with the environment, and "
            "there is none in its manifest or beside its file; give the hint as text"
        )
    return hint
