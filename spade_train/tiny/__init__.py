"""The embedded policy: a teaching-size model that writes small environments and plays them.

It is built from nothing by `spade tiny build` and ships with the package. `load()` gives it as a
policy; torch comes along only then.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spade_train.policies.hf import HFPolicy

NAME = "spade-tiny"


def folder() -> Path:
    """Return the folder of the shipped weights, in the Hugging Face layout.

    Raises:
        PolicyError: the installation has no weights.
    """
    from spade_train.errors import PolicyError

    path = Path(str(files("spade_train.tiny").joinpath("weights")))
    if not (path / "config.json").is_file():
        raise PolicyError(
            f"the embedded policy's weights are not in {path}; build them with: "
            f"spade tiny build --out {path}"
        )
    return path


def load(path: str | Path | None = None) -> HFPolicy:
    """Load the embedded policy, float32, on the processor.

    Args:
        path: a folder that `spade tiny build` wrote; the shipped weights by default.

    Raises:
        PolicyError: there are no weights, or they can't be read.
    """
    from spade_train.policies.hf import HFPolicy

    return HFPolicy.load(path or folder(), device="cpu", name=NAME)
