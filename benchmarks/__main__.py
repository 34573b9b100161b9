"""Run the benchmarks one after another and keep their figures in `benchmarks/results/`.

    python -m benchmarks [NAME ...] [--quick]

Each benchmark runs in a process of its own, with its peers in the same process, so that a busy
machine slows both. `policy_acceptance` reads folders that you name and is run by itself.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ALONE = {"policy_acceptance"}


def names() -> list[str]:
    """The benchmarks that need no arguments, by file name."""
    return sorted(path.stem for path in HERE.glob("[!_]*.py") if path.stem not in ALONE)


def main() -> int:
    """Run what was asked for; returns 1 where one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())}")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: a smoke test")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - set(names())):
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(names())}")
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    failed = []
    for name in arguments.names or names():
        print(f"== {name}", flush=True)
        command = [
            sys.executable,
            str(HERE / f"{name}.py"),
            "--json",
            str(results / f"{name}.json"),
        ]
        done = subprocess.run([*command, *(["--quick"] if arguments.quick else [])], check=False)
        if done.returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
