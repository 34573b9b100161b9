"""What stands in a registered environment's kwargs: where its source is.

A reference is plain JSON, so that `env.spec` survives JSON and pickle:

* `{"source": "suite:RollingDieEnv"}`: ships with the package;
* `{"pool": DIR, "sha256": HASH}`: in a content-addressed pool;
* `{"path": FILE, "sha256": HASH}`: a file; the hash is optional and refuses a changed one;
* `{"source": TEXT}`: the text itself.
"""

from __future__ import annotations

import hashlib
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from spade_runtime.errors import InvalidEnvironment, UsageError

SUITE = "suite:"
REFERENCE_KEYS = ("source", "path", "pool", "sha256")


class Resolved(NamedTuple):
    """A source.

    Attributes:
        text: the source.
    """

    text: str

    @property
    def sha256(self) -> str:
        """Hash of the source's bytes."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


def resolve(
    source: str | None = None,
    *,
    path: str | None = None,
    pool: str | None = None,
    sha256: str | None = None,
) -> Resolved:
    """Read the source that a reference names.

    Raises:
        UsageError: the reference names nothing, two things, or something that is not there.
        InvalidEnvironment: the source was changed since it was registered, or is no text.
    """
    named = [name for name, value in (("source", source), ("path", path), ("pool", pool)) if value]
    if len(named) != 1:
        raise UsageError(
            f"name one of source, path and pool, not {', '.join(named) or 'none of them'}"
        )
    if source is not None:
        found = Resolved(_file_text(_suite_path(source)) if source.startswith(SUITE) else source)
    elif path is not None:
        found = Resolved(_file_text(Path(path)))
    else:
        if sha256 is None:
            raise UsageError(f"the reference to pool {pool} needs the sha256 of a source")
        return _from_pool(str(pool), sha256)
    if sha256 is not None and found.sha256 != sha256:
        raise InvalidEnvironment(
            f"{path or 'the source'} was changed since it was registered: its hash is "
            f"{found.sha256}, {sha256} was registered. Register it again to validate what it is now"
        )
    return found


def hint_behind(
    source: str | None = None,
    *,
    path: str | None = None,
    pool: str | None = None,
    sha256: str | None = None,
) -> str | None:
    """The hint that comes with what a reference names, if one does.

    It is the manifest's in a pool, and `<stem>.hint.txt` beside a file or a source of the suite.

    Raises:
        UsageError: the hint can't be read, or the pool is not there.
        InvalidEnvironment: the pool's manifest was changed.
    """
    from spade_runtime.validation.files import sibling_hint

    if pool is not None and sha256 is not None:
        from spade_envs.pool import Pool

        return Pool(pool).spec(sha256).hint or None
    if path is not None:
        return sibling_hint(Path(path)) or None
    if source is not None and source.startswith(SUITE):
        return sibling_hint(_suite_path(source)) or None
    return None


def reference_of(kwargs: dict[str, Any]) -> Resolved:
    """Resolve the reference in a registered environment's kwargs."""
    return resolve(**{key: value for key, value in kwargs.items() if key in REFERENCE_KEYS})


def _suite_path(source: str) -> Path:
    from spade_envs import suite

    name = source.removeprefix(SUITE)
    paths = suite.paths()
    if name not in paths:
        near = get_close_matches(name, paths, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`spade list` shows them"
        raise UsageError(f"the suite has no environment {name!r}; {hint}")
    return paths[name]


def _file_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as problem:
        raise UsageError(
            f"{str(path)!r} can't be read ({problem.strerror}); name a file that holds an "
            "environment"
        ) from problem
    except UnicodeDecodeError as problem:
        raise InvalidEnvironment(f"SPD001: {path} is not UTF-8 (byte {problem.start})") from problem


def _from_pool(root: str, sha256: str) -> Resolved:
    from spade_envs.pool import Pool

    pool = Pool(root)
    pool.spec(sha256)  # refuses a manifest that was changed
    return Resolved(pool.source(sha256))
