"""Writes a pool as a package that another library plays: OpenEnv's or verifiers'."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from spade_envs.pool import Pool
from spade_envs.pool_index import Entry
from spade_runtime import __version__

_MANIFEST = """\
spec_version: 1
name: {name}
type: space
runtime: fastapi
app: server.app:app
port: 8000
"""

_PROJECT = """\
[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "openenv-{name}"
version = "0.1.0"
description = "{count} environments of spade-envs, served over OpenEnv"
requires-python = ">=3.11"
dependencies = ["openenv-core>=0.3", "spade-envs>={version}"]

[project.scripts]
server = "server.app:main"

[tool.setuptools]
packages = ["server"]
"""

_APP = '''\
"""Serves the pool beside this package over OpenEnv."""

from pathlib import Path

from spade_envs.adapters.openenv import make_app

POOL = Path(__file__).parents[1] / "pool"
app = make_app(POOL)


def main(host: str = "0.0.0.0", port: int = 8000) -> None:
    """Run the server until it is stopped."""
    import uvicorn

    uvicorn.run(app, host=host, port=port)


if __name__ == "__main__":
    main()
'''

_README = """\
# {name}

{count} environments of spade-envs, served over OpenEnv. Run `uv lock` once, then `openenv serve`,
or `python -m server.app`. A client names the environment in its reset:

```python
result = env.reset(environment={first}, seed=7)
result = env.step({{"message": "..."}})
```

| environment | skill | task |
| --- | --- | --- |
{rows}
"""


_VERIFIERS_PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{dashed}"
version = "0.1.0"
description = "{count} environments of spade-envs, for verifiers"
requires-python = ">=3.11"
dependencies = ["verifiers>=0.4", "spade-envs>={version}"]

[tool.hatch.build.targets.wheel]
packages = ["{name}"]
"""

_TASKSET = '''\
"""The pool in this package, as a taskset and an environment of verifiers."""

from pathlib import Path

from spade_envs.adapters.verifiers import SpadePlay, SpadeTaskset


class PoolTaskset(SpadeTaskset):
    """Every environment of the pool."""

    POOL = Path(__file__).parent / "pool"


__all__ = ["PoolTaskset", "SpadePlay"]
'''

_VERIFIERS_README = """\
# {dashed}

{count} environments of spade-envs, for verifiers. Install it (`pip install .`), then:

```bash
vf-eval {dashed} -n 4 --model MODEL
vf-eval {dashed} --env.taskset.skill optimization --env.taskset.seeds 16 --model MODEL
```

| environment | skill | task |
| --- | --- | --- |
{rows}
"""


def write_openenv(pool: Pool, entries: Sequence[Entry], folder: Path) -> None:
    """Write an OpenEnv package with a pool of its own into an empty folder."""
    name = "spade_pool"
    _copy(pool, entries, folder / "pool")
    count, first = len(entries), json.dumps(entries[0].id)
    files = {
        "openenv.yaml": _MANIFEST.format(name=name),
        "pyproject.toml": _PROJECT.format(name=name, count=count, version=__version__),
        "server/__init__.py": "",
        "server/app.py": _APP,
        "README.md": _README.format(name=name, count=count, first=first, rows=_rows(entries)),
    }
    _write(folder, files)


def write_verifiers(pool: Pool, entries: Sequence[Entry], folder: Path) -> None:
    """Write a package of verifiers with a pool of its own into an empty folder."""
    name, dashed, count = "spade_pool", "spade-pool", len(entries)
    _copy(pool, entries, folder / name / "pool")
    project = _VERIFIERS_PROJECT.format(name=name, dashed=dashed, count=count, version=__version__)
    files = {
        "pyproject.toml": project,
        f"{name}/__init__.py": _TASKSET,
        "README.md": _VERIFIERS_README.format(dashed=dashed, count=count, rows=_rows(entries)),
    }
    _write(folder, files)


def _copy(pool: Pool, entries: Sequence[Entry], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    inner = Pool(target, create=True)
    inner.add_many(
        (pool.source(one.sha256), pool.spec(one.sha256), pool.card(one.sha256)) for one in entries
    )
    inner.lock()


def _rows(entries: Sequence[Entry]) -> str:
    return "\n".join(
        f"| `{one.id}` | {one.skill} | {one.title.replace('|', '/')} |" for one in entries
    )


def _write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
