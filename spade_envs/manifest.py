"""Reads, seals and writes manifests: the `env.json` beside an environment's source.

A seal is the SHA-256 of the manifest's canonical JSON without the seal itself, so that a changed
manifest is found like a changed source (contract.md section 4).
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from spade_runtime.errors import InvalidEnvironment, UsageError
from spade_runtime.literals import too_deep
from spade_runtime.spec import CONTRACT_VERSION, EnvSpec
from spade_runtime.validation.text import visible

# Of an environment, as a whole. A class that is called just Env leaves no name.
ID = re.compile(r"spade/[\w.]*-v\d+")
DEEPEST = 400  # lists and objects inside of each other; all of them are walked by recursion
MOST_BYTES = 16 * 2**20  # of any one file in a pool; sources are a thousandth of that


def source_hash(source: str | bytes) -> str:
    """SHA-256 of a source's bytes, in hex.

    >>> source_hash("x = 1")[:12]
    '8ff436def145'
    """
    data = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    return hashlib.sha256(data).hexdigest()


def read_whole(path: Path, limit: int = MOST_BYTES) -> bytes:
    """Read a file that should be short; of one that is not, no more than that is read.

    Raises:
        OSError: it can't be read, or holds more bytes than the limit.
    """
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it is longer than {limit} bytes", str(path))
    return data


def parsed(text: str | bytes) -> Any:
    """JSON that a stranger may have written.

    Raises:
        ValueError: it is none, or is nested more deeply than can be handled.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        value = None
    else:
        if not too_deep(value, DEEPEST):
            return value
    raise ValueError(f"lists and objects are nested more than {DEEPEST} deep")


def with_suffix(name: str, sha256: str, digits: int = 8) -> str:
    """An id with digits of the hash, for where another source holds the plain one.

    >>> with_suffix("spade/Coin-v0", "1234567890")
    'spade/Coin.12345678-v0'
    """
    stem, dash, version = name.rpartition("-v")
    return f"{stem}.{sha256[:digits]}{dash}{version}"


def require_id(name: str) -> None:
    """Refuse an id that is none: it becomes a file's name, and Gymnasium has to take it.

    Raises:
        InvalidEnvironment: it is not formed like `spade/RollingDie-v0`.
    """
    if not ID.fullmatch(name):
        raise InvalidEnvironment(f"the id {name!r:.80} is not formed like spade/RollingDie-v0")


def is_hash(text: str) -> bool:
    """Whether a text has the form of a source's hash.

    >>> is_hash("ab" * 32), is_hash("../../etc")
    (True, False)
    """
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


def seal_of(manifest: dict[str, Any]) -> str:
    """The seal that a manifest, given as plain JSON values, should carry."""
    body = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def sealed(spec: EnvSpec) -> EnvSpec:
    """The same manifest with its seal."""
    return spec.model_copy(update={"manifest_sha256": seal_of(spec.model_dump(mode="json"))})


def to_json(spec: EnvSpec) -> str:
    """A sealed manifest as it is written to disk."""
    return json.dumps(spec.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def require_contract(version: object, where: str) -> None:
    """Refuse what was written for a contract that this version does not know.

    Raises:
        UsageError: the version is newer than ours, or no version at all.
    """
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise UsageError(f"{where}: contract_version is {version!r:.80}, expected a whole number")
    if version > CONTRACT_VERSION:
        raise UsageError(
            f"{where} is written for contract {version}; this program knows contract "
            f"{CONTRACT_VERSION}. Upgrade it with: pip install -U spade-envs"
        )


def read_manifest(path: Path, *, sha256: str | None = None) -> EnvSpec:
    """Read a manifest and check its seal, and that it belongs to a source.

    Args:
        path: the `env.json`.
        sha256: hash of the source that it should describe.

    Raises:
        InvalidEnvironment: unreadable, not a manifest, or changed since it was sealed.
        UsageError: written for a newer contract.
    """
    try:
        raw = parsed(read_whole(path))
    except OSError as error:
        raise InvalidEnvironment(f"{path}: can't read the manifest: {error.strerror}") from error
    except ValueError as error:
        raise InvalidEnvironment(
            f"{path}: the manifest is not JSON, or only part of it ({error})"
        ) from error
    if not isinstance(raw, dict):
        raise InvalidEnvironment(f"{path}: the manifest is a JSON {type(raw).__name__}, no object")
    require_contract(raw.get("contract_version"), str(path))
    try:
        spec = EnvSpec.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        place = visible(".".join(map(str, first["loc"])), 120) or "manifest"
        raise InvalidEnvironment(f"{path}: {place}: {first['msg']}") from error
    try:
        require_id(spec.id)
        seal = seal_of(spec.model_dump(mode="json"))
    except InvalidEnvironment as error:
        raise InvalidEnvironment(f"{path}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidEnvironment(f"{path}: the manifest is nested too deeply") from error
    if spec.manifest_sha256 != seal:
        raise InvalidEnvironment(
            f"{path}: the manifest was changed: its seal is {spec.manifest_sha256}, its content "
            f"has {seal}. Remove {path.parent} and add the source again"
        )
    if sha256 is not None and spec.sha256 != sha256:
        raise InvalidEnvironment(
            f"{path}: the manifest describes the source {spec.sha256}, not {sha256}"
        )
    return spec
