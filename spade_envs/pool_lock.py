"""The lock file of a pool: which sources and manifests it held when it was written."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from spade_runtime.spec import CONTRACT_VERSION, Sha256


class LockedEnvironment(BaseModel):
    """One environment, pinned by the hashes of its source and of its manifest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    sha256: Sha256
    manifest_sha256: Sha256


class PoolLock(BaseModel):
    """`pool.lock`, in the form of `schemas/pool.schema.json`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    contract_version: int = CONTRACT_VERSION
    environments: list[LockedEnvironment]
