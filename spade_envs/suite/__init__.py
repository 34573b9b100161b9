"""The environments that ship with the package: one file each, in the contract's own form.

Every file is an environment's source, to be opened in the sandbox like any other; nothing imports
it. The class name is the file's name in camel case with `Env` at its end.

>>> from spade_envs import suite
>>> suite.paths()["RollingDieEnv"].name
'rolling_die.py'
"""

from __future__ import annotations

from pathlib import Path

_TOOLS = ("gallery",)  # modules of the package that are no environments


def paths() -> dict[str, Path]:
    """Class name of each environment, in alphabetical order, with the file that holds it."""
    sources = (
        path
        for path in Path(__file__).parent.glob("*.py")
        if not path.stem.startswith("_") and path.stem not in _TOOLS
    )
    named = {_class_name(path.stem): path for path in sources}
    return dict(sorted(named.items()))


def names() -> list[str]:
    """Class names of the environments, in alphabetical order."""
    return list(paths())


def _class_name(stem: str) -> str:
    return "".join(part.capitalize() for part in stem.split("_")) + "Env"
