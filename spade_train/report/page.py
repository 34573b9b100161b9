"""The page: one HTML file that opens without a server, a network or a library.

Data is gzip in base64 and unpacked by the browser when it is needed. Text of environments reaches
the page as data only and is drawn as text nodes; a content policy lets no script run but the one
that is hashed here, and lets nothing be fetched.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from spade_runtime.errors import UsageError
from spade_train.analysis.embedding import Embedder, available
from spade_train.report.payload import Payload, build_payload
from spade_train.report.records import read_run

STYLES = ("base.css", "layout.css", "parts.css", "story.css")
SCRIPTS = (
    "dom.js",
    "code.js",
    "chart.js",
    "map.js",
    "story.js",
    "versions.js",
    "duel.js",
    "detail.js",
    "browse.js",
    "main.js",
)


def write_report(
    run: Path, out: Path | None = None, *, embedder: Embedder | None = None
) -> tuple[Path, list[str]]:
    """Write a run's report.

    Args:
        run: the run's folder.
        out: the file to write; `report.html` in the run's folder by default.
        embedder: for map and diversity; TF-IDF where scikit-learn is installed by default.

    Returns:
        The file, and what could not be read of the run.

    Raises:
        UsageError: there is no run, or the file can't be written.
    """
    records = read_run(run)
    chosen: Embedder = embedder or ("tfidf" if available("sklearn") else "none")
    page = render(build_payload(records, embedder=chosen))
    target = out or run / "report.html"
    partial = target.with_name(target.name + ".part")
    try:
        partial.write_text(page, encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UsageError(
            f"can't write {target}: {error.strerror}; name another with --out"
        ) from None
    return target, records.problems


def render(payload: Payload) -> str:
    """Return the page of a payload."""
    script = "\n".join(_asset(name) for name in SCRIPTS)
    hashed = b64encode(sha256(script.encode()).digest()).decode()
    blobs = [_blob("index", payload.index)]
    blobs += [_blob(f"chunk-{i}", chunk) for i, chunk in enumerate(payload.chunks)]
    return Template(_asset("page.html")).substitute(
        title=escape(f"{payload.index['name']}: self-play report"),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hashed}'",
        style="\n".join(_asset(name) for name in STYLES),
        script=script,
        data="\n".join(blobs),
    )


def _blob(name: str, value: Any) -> str:
    raw = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
    # A fixed time keeps the file the same for the same run.
    packed = b64encode(gzip.compress(raw, 9, mtime=0)).decode()
    return f'<script type="application/gzip" id="data-{name}">{packed}</script>'


def _asset(name: str) -> str:
    return files("spade_train.report").joinpath("assets", name).read_text(encoding="utf-8")
