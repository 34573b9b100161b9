"""Words of messages that depend on the words beside them."""

from __future__ import annotations


def an(word: str) -> str:
    """A word with its indefinite article.

    >>> an("int"), an("dict"), an("Any")
    ('an int', 'a dict', 'an Any')
    """
    return f"an {word}" if word[:1].lower() in tuple("aeio") else f"a {word}"
