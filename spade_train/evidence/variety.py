"""How different the designs of each arm are: Vendi score and near-duplicates at equal n."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spade_train.analysis.diversity import cosine_similarity, mean_pairwise_distance, vendi_score
from spade_train.analysis.duplicates import NEAR, jaccard, normalise_source, shingles
from spade_train.analysis.embedding import Embedder, embed
from spade_train.evidence.gather import RunFacts
from spade_train.seeds import derive

# Pairs grow with the square of it, and so does the time.
MOST = 128


@dataclass(frozen=True, slots=True)
class Variety:
    """How different n designs of one run are, the mean over some draws of n.

    Attributes:
        n: designs in a draw, the same for every run that is compared.
        vendi: Vendi score: the number of wholly different designs that would be as diverse.
        distance: mean pairwise distance (1 - cosine).
        near_duplicates: share of the designs that an earlier one of the draw nearly equals.
    """

    n: int
    vendi: float
    distance: float
    near_duplicates: float


def variety(
    runs: Sequence[RunFacts], embedder: Embedder, *, most: int = MOST, draws: int = 5
) -> Mapping[tuple[str, int], Variety]:
    """Measure every run at the same number of designs, in one common space.

    Args:
        runs: to compare.
        embedder: `tfidf` or `sbert`.
        most: designs in a draw at most; fewer where the smallest run has fewer.
        draws: of each run, each without replacement.

    Returns:
        (arm, seed) -> its variety; nothing where a run has less than two designs.

    Raises:
        UsageError: the embedder is not installed.
    """
    n = min([most, *(len(run.made) for run in runs)])
    if not runs or n < 2:
        return {}
    drawn = {(run.arm, run.seed): _draws(run, n, draws) for run in runs}
    texts = sorted({text for found in drawn.values() for draw in found for text in draw})
    rows = embed(texts, embedder)
    if rows is None or len(texts) < 2:
        return {}
    place = {text: index for index, text in enumerate(texts)}
    return {
        key: _mean([_of_draw(draw, rows[[place[t] for t in draw]]) for draw in found])
        for key, found in drawn.items()
    }


def _draws(run: RunFacts, n: int, draws: int) -> list[list[str]]:
    sources = [design.source for design in run.made]
    return [
        random.Random(derive("variety", run.arm, run.seed, number)).sample(sources, n)
        for number in range(draws)
    ]


def _of_draw(sources: Sequence[str], rows: np.ndarray) -> Variety:
    return Variety(
        len(sources),
        vendi_score(cosine_similarity(rows)),
        mean_pairwise_distance(rows) or 0.0,
        near_duplicate_share(sources),
    )


def near_duplicate_share(sources: Sequence[str], near: float = NEAR) -> float:
    r"""Return the share of sources that one before them equals or nearly equals.

    Two are near when they share nine tenths of their runs of five tokens; the class's name, layout
    and comments do not count.

    >>> near_duplicate_share(["class AEnv:\\n    N = 3", "class BEnv:\\n    N = 3  # same"])
    0.5
    """
    normal = [normalise_source(source) for source in sources]
    runs = [shingles(text) for text in normal]
    known: set[str] = set()
    repeats = 0
    for index, text in enumerate(normal):
        if text in known or any(jaccard(runs[index], other) >= near for other in runs[:index]):
            repeats += 1
        known.add(text)
    return repeats / len(sources)


def _mean(found: Sequence[Variety]) -> Variety:
    return Variety(
        found[0].n,
        *(
            float(np.mean([getattr(one, name) for one in found]))
            for name in ("vendi", "distance", "near_duplicates")
        ),
    )
