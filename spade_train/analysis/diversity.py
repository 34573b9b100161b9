"""How different a set of environments is: Vendi score and distances over embeddings."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def vendi_score(similarity: ArrayLike) -> float:
    """Return the effective number of different items (Friedman and Dieng, 2023).

    It is exp of the entropy of the eigenvalues of K / n, for a positive semi-definite similarity
    K with ones on its diagonal: 1 where all are alike, n where nothing resembles anything.

    Args:
        similarity: shape (n, n).

    >>> vendi_score([[1, 0], [0, 1]])
    2.0
    """
    matrix = np.asarray(similarity, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"a similarity is a square matrix, got the shape {matrix.shape}")
    values = np.linalg.eigvalsh(matrix / len(matrix))
    values = values[values > 1e-12]
    return float(np.round(np.exp(-np.sum(values * np.log(values))), 12))


def cosine_similarity(embeddings: ArrayLike) -> NDArray[np.float64]:
    """Return the cosine similarity of every pair; rows are items, shape (n, dimensions)."""
    rows = np.asarray(embeddings, dtype=np.float64)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(norms > 0, norms, 1.0)
    similarity = np.clip(unit @ unit.T, -1.0, 1.0)
    np.fill_diagonal(similarity, 1.0)
    return np.asarray(similarity)


def mean_pairwise_distance(embeddings: ArrayLike) -> float | None:
    """Return the mean of 1 - cosine similarity over all pairs; None below two items."""
    similarity = cosine_similarity(embeddings)
    count = len(similarity)
    if count < 2:
        return None
    return float(1.0 - (similarity.sum() - count) / (count * (count - 1)))
