"""Seeds from labels: every random stream of a run is named, so a step depends on its labels alone.

A killed run that resumes at a step draws what the unbroken run drew there, because nothing is
carried over in a generator's hidden state.
"""

from __future__ import annotations

import hashlib

ENVIRONMENT_SEEDS = 2**31


def derive(*labels: object) -> int:
    """Return a seed in [0, 2^63) that the labels determine, in any process.

    >>> derive("rollout", 7, 3) == derive("rollout", 7, 3)
    True
    >>> derive("rollout", 7, 3) == derive("rollout", 7, 4)
    False
    """
    text = "\x1f".join(f"{type(label).__name__}:{label}" for label in labels)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def environment_seeds(count: int, *labels: object) -> list[int]:
    """Return `count` different reset seeds in [0, 2^31)."""
    seeds: list[int] = []
    taken: set[int] = set()
    draw = 0
    while len(seeds) < count:
        seed = derive("environment-seed", draw, *labels) % ENVIRONMENT_SEEDS
        draw += 1
        if seed not in taken:
            taken.add(seed)
            seeds.append(seed)
    return seeds
