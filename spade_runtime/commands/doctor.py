"""`spade doctor`: which isolation this machine gives, and what is missing."""

from __future__ import annotations

import argparse
import json
from typing import Any

from spade_runtime.cli import Command
from spade_runtime.errors import HostError
from spade_runtime.sandbox import selfcheck
from spade_runtime.sandbox.facilities import Facilities, machine
from spade_runtime.sandbox.pool import SandboxPool


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--self-check",
        action="store_true",
        help="switch each layer on alone and assert what it stops, then all together",
    )


def _run(arguments: argparse.Namespace) -> int:
    report: dict[str, Any] = {"machine": machine(), "level": "none", "missing": []}
    try:
        with SandboxPool(level="best_effort") as pool:
            facilities = pool.facilities
    except HostError as problem:
        report["missing"] = [str(problem)]
        report["facilities"] = Facilities().to_dict()
    else:
        report["level"] = facilities.level()
        report["facilities"] = facilities.to_dict()
        report["in_force"] = facilities.parts()
        report["missing"] = facilities.missing_for_strict()
    checks = list(selfcheck.run()) if arguments.self_check and not _down(report) else []
    if arguments.self_check:
        report["self_check"] = [
            {
                "layers": list(one.layers),
                "probe": one.name,
                "stopped": one.stopped,
                "expected": one.expected,
                "seen": one.seen,
                "ok": one.ok,
            }
            for one in checks
        ]
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        _print(report, checks)
    if report["level"] != "strict":
        return HostError.exit_code
    return 0 if all(one.ok for one in checks) else 1


def _down(report: dict[str, Any]) -> bool:
    return "in_force" not in report


def _print(report: dict[str, Any], checks: list[selfcheck.Probe]) -> None:
    host = report["machine"]
    print(
        f"machine    {host['system']} {host['kernel']} {host['architecture']}, "
        f"{host['cpus']} processors, Python {host['python']}, as {host['user']}"
    )
    print(f"isolation  {report['level']}")
    for part in report.get("in_force", []):
        print(f"           + {part}")
    for name, problem in report["facilities"]["problems"].items():
        print(f"           - {name}: {problem}")
    if report["missing"]:
        print("missing for 'strict':")
        for text in report["missing"]:
            print(f"           {text}")
    if checks:
        _print_checks(checks)


def _print_checks(checks: list[selfcheck.Probe]) -> None:
    print("\nself-check (stopped / allowed; ! is a promise that was not kept)")
    print(f"{'layers':<14}" + "".join(f"{name:>10}" for name in selfcheck.PROBES))
    rows: dict[tuple[str, ...], list[selfcheck.Probe]] = {}
    for one in checks:
        rows.setdefault(one.layers, []).append(one)
    for layers, row in rows.items():
        name = "all" if len(layers) > 1 else "".join(layers) or "(control)"
        cells = [("stopped" if one.stopped else "allowed") + ("" if one.ok else "!") for one in row]
        print(f"{name:<14}" + "".join(f"{cell:>10}" for cell in cells))
    broken = [one for one in checks if not one.ok]
    for one in broken:
        print(f"broken: {'+'.join(one.layers) or 'control'}: {one.name}: {one.seen}")
    print(f"{len(checks) - len(broken)} of {len(checks)} probes as promised")


command = Command(
    name="doctor",
    summary="which isolation this machine gives, and what is missing",
    configure=_configure,
    run=_run,
    description=(
        "Starts a sandbox with all that this machine has, and says which level that makes.\n"
        "Exit code 0 for 'strict', 3 where something is missing for it, 1 where a layer does\n"
        "not hold what it promises."
    ),
)
