"""Registers environments with Gymnasium: one at a time after validation, or ten thousand at once.

`gymnasium.register` in a loop looks at every id that is already there; here the registry is filled
directly, after our own check for ids that are taken. What is stored is a reference in plain JSON
(`spade_envs.references`): no source is read before an environment is made.
"""

from __future__ import annotations

import re
import warnings
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnasium.envs.registration import EnvSpec as GymSpec
from gymnasium.envs.registration import registry

from spade_envs.references import REFERENCE_KEYS, SUITE, reference_of
from spade_runtime.errors import InvalidEnvironment, UsageError

if TYPE_CHECKING:
    from spade_runtime.spec import EnvSpec, IsolationLevel, Profile

ENTRY_POINT = "spade_envs.env:SpadeEnv"
VECTOR_ENTRY_POINT = "spade_envs.vector:SpadeVectorEnv"
NAMESPACE = "spade"
_ID = re.compile(r"spade/(?P<name>[\w.]+)-v(?P<version>\d+)\Z")


def register(
    source: str | Path | EnvSpec,
    *,
    pool: str | Path | None = None,
    profile: Profile = "standard",
    hint: str | None = None,
    level: IsolationLevel = "strict",
) -> EnvSpec:
    """Validate an environment and register it.

    Args:
        source: a path, the text of a source, or the `EnvSpec` of an environment in `pool`.
        pool: a pool's directory in which to store it (made if it is not there); without one the
            registration refers to the file, or holds the text.
        profile: `lenient`, `standard` or `strict`.
        hint: a hint to validate and to keep in the manifest; beside a file, `<stem>.hint.txt`.
        level: isolation, here and where the environment is made: `strict`, `best_effort`, `none`.

    Returns:
        The environment's manifest; `gymnasium.make(spec.id)` makes it. Where another source holds
        the id, eight digits of the hash are added to the name, with a warning.

    Raises:
        InvalidEnvironment: the validator rejects it; `findings` says why.
        UsageError: the file can't be read, or the manifest's source is not in the pool.
    """
    from spade_envs.admission import admit

    spec, kwargs = admit(source, pool=pool, profile=profile, hint=hint, level=level)
    if level != "strict":
        kwargs["level"] = level
    name = _free_id(spec.id, spec.sha256, kwargs)
    if name != spec.id:
        spec = spec.model_copy(update={"id": name})
    registry[name] = _gym_spec(name, kwargs)
    return spec


def register_pool(folder: str | Path) -> list[str]:
    """Register all environments of a pool, from its index alone: ten thousand in under 0.1 s.

    Sources and manifests are read, and their hashes checked, when one is made; whatever a manifest
    claims, the static gates run first.

    Returns:
        The ids, in order. An id that another source holds gets the hash suffix, with one warning
        for all of them; a copy of one of the suite's environments is the suite's.

    Raises:
        UsageError: there is no pool, or a newer contract wrote it.
    """
    from spade_envs.manifest import with_suffix
    from spade_envs.pool import Pool

    root = str(Path(folder).resolve())
    rows = Pool(root).index.ids()
    made: dict[str, GymSpec] = {}
    moved: list[str] = []
    for name, sha256 in rows:
        held = registry.get(name)
        if held is not None and _suite_hash(held) == sha256:
            made[name] = held
            continue
        if held is not None and held.kwargs.get("sha256") != sha256:
            name = with_suffix(name, sha256)
            moved.append(name)
        made[name] = _gym_spec(name, {"pool": root, "sha256": sha256})
    registry.update(made)
    if moved:
        shown = ", ".join(moved[:3]) + (", ..." if len(moved) > 3 else "")
        ids = "1 id is" if len(moved) == 1 else f"{len(moved)} ids are"
        warnings.warn(f"{ids} held by other sources and got a suffix: {shown}", stacklevel=2)
    return list(made)


def register_suite() -> list[str]:
    """Register the environments that ship with the package, without reading one of them."""
    from spade_envs import suite

    names = {suite_id(name): name for name in suite.names()}
    registry.update(
        {name: _gym_spec(name, {"source": f"{SUITE}{held}"}) for name, held in names.items()}
    )
    return list(names)


def unregister(*ids: str) -> None:
    """Take environments out of Gymnasium's registry.

    Raises:
        UsageError: an id that is not registered, or not ours; nothing is taken out then.
    """
    for name in ids:
        if not _ID.match(name):
            raise UsageError(f"{name!r} is no id of ours; one looks like spade/RollingDie-v0")
        if name not in registry:
            raise UsageError(f"{name!r} is not registered; {_near(name)}")
    for name in ids:
        del registry[name]


def registered() -> list[str]:
    """Our ids in Gymnasium's registry, in order."""
    return sorted(name for name, spec in registry.items() if spec.namespace == NAMESPACE)


def suite_id(class_name: str, version: int = 0) -> str:
    """The id of a class (contract.md section 1).

    >>> suite_id("RollingDieEnv")
    'spade/RollingDie-v0'
    """
    return f"{NAMESPACE}/{class_name.removesuffix('Env')}-v{version}"


def _near(name: str) -> str:
    near = get_close_matches(name, registered(), n=1)
    return f"did you mean {near[0]!r}?" if near else "spade_envs.registered() lists the ids"


def _free_id(name: str, sha256: str, kwargs: dict[str, Any]) -> str:
    from spade_envs.manifest import with_suffix

    held = registry.get(name)
    if held is None or _same_source(held, sha256, kwargs):
        return name
    free = with_suffix(name, sha256)
    warnings.warn(f"{name} is held by another source; registered as {free}", stacklevel=3)
    return free


def _suite_hash(held: GymSpec) -> str | None:
    """The hash of the source behind one of the suite's registrations; None for all others."""
    source = str(held.kwargs.get("source", ""))
    if not source.startswith(SUITE):
        return None
    from spade_envs import suite

    return str(suite.manifests()[source.removeprefix(SUITE)]["sha256"])


def _same_source(held: GymSpec, sha256: str, kwargs: dict[str, Any]) -> bool:
    theirs = {key: value for key, value in held.kwargs.items() if key in REFERENCE_KEYS}
    ours = {key: value for key, value in kwargs.items() if key in REFERENCE_KEYS}
    if theirs == ours or theirs.get("sha256") == sha256:
        return True
    try:
        return reference_of(theirs).sha256 == sha256
    except (UsageError, InvalidEnvironment):
        # What held the id is gone or broken; it keeps the id all the same.
        return False


def _gym_spec(name: str, kwargs: dict[str, Any]) -> GymSpec:
    """Gymnasium's own record, built without parsing the id a second time."""
    found = _ID.match(name)
    if found is None:
        raise UsageError(f"{name!r} is no id; one looks like spade/RollingDie-v0")
    spec = GymSpec.__new__(GymSpec)
    spec.__dict__.update(
        id=name,
        entry_point=ENTRY_POINT,
        reward_threshold=None,
        nondeterministic=False,
        max_episode_steps=None,
        order_enforce=True,
        disable_env_checker=False,
        kwargs=kwargs,
        namespace=NAMESPACE,
        name=found.group("name"),
        version=int(found.group("version")),
        additional_wrappers=(),
        vector_entry_point=VECTOR_ENTRY_POINT,
    )
    return spec
