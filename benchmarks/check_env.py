"""What Gymnasium's own `check_env` lets pass, of the files with one flaw each in `tests/bad_envs`.

    python benchmarks/check_env.py [--json FILE] > docs/check_env.md

Each file is played by `check_env` through `SpadeEnv`, in the sandbox. A file that the static gates
refuse never gets that far; of the others, `check_env` passes those in which it finds nothing.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from pathlib import Path

from gymnasium.error import Error as GymnasiumError
from gymnasium.utils.env_checker import check_env

from spade_envs.env import SpadeEnv
from spade_runtime.errors import EnvFault, InvalidEnvironment

FOLDER = Path(__file__).parent.parent / "tests" / "bad_envs"
REFUSED, FOUND, PASSED = "refused when opened", "found by check_env", "passed by check_env"


def verdict(file: Path) -> str:
    """What becomes of one file under `check_env`."""
    env = SpadeEnv(path=str(file))
    env.action_space.seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_env(env, skip_render_check=True, skip_close_check=True)
    except InvalidEnvironment:
        return REFUSED
    except (AssertionError, GymnasiumError, EnvFault, TypeError, ValueError):
        return FOUND
    finally:
        env.close()
    return PASSED


def compare() -> dict[str, dict[str, str]]:
    """The verdict on every file with a flaw, by code."""
    rows: dict[str, dict[str, str]] = defaultdict(dict)
    for file in sorted(FOLDER.glob("*.py")):
        first = file.read_bytes().split(b"\n", 1)[0].decode()
        code, place, _ = (part.strip() for part in first.removeprefix("#").split("|"))
        if place != "neighbour":
            rows[code][file.stem] = verdict(file)
    return dict(rows)


def page(rows: dict[str, dict[str, str]]) -> str:
    """The comparison as a page of Markdown."""
    all_rows = [value for files in rows.values() for value in files.values()]
    played = sum(value != REFUSED for value in all_rows)
    passed = all_rows.count(PASSED)
    lines = [
        "# Beside Gymnasium's check_env",
        "",
        "Written by `python benchmarks/check_env.py`; a test fails where the two differ.",
        "",
        f"`tests/bad_envs` holds {len(all_rows)} files with one flaw each. `spade validate` names "
        "every one by its code.",
        f"The static gates refuse {len(all_rows) - played} of them before they are played. Of the "
        f"{played} that are left, Gymnasium's",
        f"`check_env` lets {passed} pass.",
        "",
        "| code | file | check_env |",
        "| --- | --- | --- |",
    ]
    for code, files in sorted(rows.items()):
        lines += [f"| {code} | {name} | {value} |" for name, value in sorted(files.items())]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compare, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="makes no difference here")
    arguments = parser.parse_args()
    rows = compare()
    print(page(rows), end="")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
