"""The environments that ship with the package: one file each, in the contract's own form.

Every file is an environment's source, to be opened in the sandbox like any other; nothing imports
it. The class name is the file's name in camel case with `Env` at its end; the hint that goes with
it lies beside it as `<name>.hint.txt`.

>>> from spade_envs import suite
>>> suite.paths()["RollingDieEnv"].name
'rolling_die.py'
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spade_runtime.spec import EnvSpec


def paths() -> dict[str, Path]:
    """Class name of each environment, in alphabetical order, with the file that holds it."""
    sources = Path(__file__).parent.glob("[a-z]*.py")
    return dict(sorted((_class_name(path.stem), path) for path in sources))


def names() -> list[str]:
    """Class names of the environments, in alphabetical order."""
    return list(paths())


def specs() -> dict[str, EnvSpec]:
    """Manifest of each environment by class name, as `spade_envs.gallery` wrote them."""
    from spade_runtime.spec import EnvSpec  # `import spade_envs` reads names only, and stays quick

    return {name: EnvSpec.model_validate(row) for name, row in manifests().items()}


def manifests() -> dict[str, dict[str, Any]]:
    """The same as plain JSON values: they ship with the package, and listings need no more."""
    rows: dict[str, dict[str, Any]] = json.loads(
        (Path(__file__).parent / "index.json").read_bytes()
    )
    return rows


def _class_name(stem: str) -> str:
    return "".join(part.capitalize() for part in stem.split("_")) + "Env"
