"""Each layer of the isolation alone, and what the doctor says of them."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spade_runtime.commands.doctor import command
from spade_runtime.errors import HostError, IsolationUnavailable
from spade_runtime.sandbox import selfcheck
from spade_runtime.sandbox.facilities import LAYERS, Facilities, require
from spade_runtime.sandbox.pool import SandboxPool


@pytest.fixture(scope="module")
def probes() -> list[selfcheck.Probe]:
    return list(selfcheck.run())


def stopped(probes: list[selfcheck.Probe], *layers: str) -> set[str]:
    return {one.name for one in probes if one.layers == tuple(sorted(layers)) and one.stopped}


@pytest.mark.hostile
def test_hostile_every_probe_succeeds_where_no_layer_is_on(probes: list[selfcheck.Probe]) -> None:
    assert stopped(probes) == set()


@pytest.mark.hostile
@pytest.mark.parametrize("layer", LAYERS)
def test_hostile_layer_alone_stops_what_it_promises(
    probes: list[selfcheck.Probe], layer: str
) -> None:
    broken = [one for one in probes if one.layers == (layer,) and not one.ok]
    assert broken == []


@pytest.mark.hostile
def test_hostile_layers_together_stop_everything(probes: list[selfcheck.Probe]) -> None:
    assert stopped(probes, *LAYERS) == set(selfcheck.PROBES)


@pytest.mark.hostile
def test_hostile_every_asset_has_three_layers_but_processes(
    probes: list[selfcheck.Probe],
) -> None:
    with SandboxPool(level="best_effort") as pool:
        found = pool.facilities
    if not (found.seccomp and found.landlock_abi >= 6 and found.empty_root):
        pytest.skip(f"this machine has only {', '.join(found.parts())}")
    counts = {
        name: sum(name in stopped(probes, layer) for layer in LAYERS) for name in selfcheck.PROBES
    }
    for name in ("open", "write", "connect", "kill", "environ"):
        assert counts[name] >= 3, (name, counts)
    # Processes: seccomp, and the limit on processes once the uid is not root's.
    assert counts["fork"] >= (1 if os.geteuid() == 0 else 2)


def strict() -> Facilities:
    return Facilities(seccomp=True, landlock_abi=7, unique_uid=True, undumpable=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seccomp": False}, "libseccomp"),
        ({"landlock_abi": 0}, "Landlock"),
        ({"unique_uid": False, "landlock_abi": 5}, "unprivileged"),
        ({"unique_uid": False, "undumpable": False}, "run as root"),
    ],
)
def test_what_is_missing_for_strict_is_named_with_its_mend(
    change: dict[str, object], words: str
) -> None:
    facilities = strict()
    for name, value in change.items():
        setattr(facilities, name, value)
    assert facilities.level() != "strict"
    with pytest.raises(IsolationUnavailable, match=words):
        require("strict", facilities)
    require("best_effort", facilities)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"landlock_abi": 0, "empty_root": True},
        {"unique_uid": False, "user_namespace": True},
        {"unique_uid": False, "landlock_abi": 6},
    ],
)
def test_strict_has_several_roads(change: dict[str, object]) -> None:
    facilities = strict()
    for name, value in change.items():
        setattr(facilities, name, value)
    assert facilities.level() == "strict"
    require("strict", facilities)


def test_a_pool_refuses_to_start_without_a_layer_that_strict_needs() -> None:
    layers = frozenset(LAYERS) - {"seccomp"}
    with pytest.raises(IsolationUnavailable, match="seccomp"):
        SandboxPool(layers=layers)
    with SandboxPool(level="best_effort", layers=layers) as pool:
        assert pool.isolation.startswith("best_effort (") and "seccomp" not in pool.isolation


def test_a_machine_without_libseccomp_is_told_what_to_install(
    tmp_path: Path, repository: Path
) -> None:
    # What pyseccomp does where the library is missing.
    (tmp_path / "pyseccomp.py").write_text("raise RuntimeError('Unable to find libseccomp')\n")
    program = (
        "import sys\n"
        f"sys.path[:0] = [{str(tmp_path)!r}, {str(repository)!r}]\n"
        "from spade_runtime.sandbox.pool import SandboxPool\n"
        "try:\n    SandboxPool()\nexcept Exception as e:\n    print(type(e).__name__, e)\n"
        "with SandboxPool(level='best_effort') as pool:\n    print(pool.facilities.level())\n"
        "    print(*pool.facilities.missing_for_strict())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    first, level, *missing = done.stdout.splitlines()
    assert first.startswith("IsolationUnavailable") and "apt install libseccomp2" in first
    assert level == "best_effort" and "Unable to find libseccomp" in " ".join(missing)


def test_a_kernel_or_container_without_the_seccomp_call_is_named(repository: Path) -> None:
    # A filter of our own forbids the call; libseccomp asks once a process, so another one looks.
    doctor = (
        f"import sys; sys.path[:0] = [{str(repository)!r}]\n"
        "from spade_runtime.cli import main\n"
        "raise SystemExit(main(['doctor']))\n"
    )
    program = (
        "import errno, os, sys, pyseccomp\n"
        "before = pyseccomp.SyscallFilter(pyseccomp.ALLOW)\n"
        "before.add_rule(pyseccomp.ERRNO(errno.EPERM), 'seccomp')\n"
        "before.load()\n"
        f"os.execv(sys.executable, [sys.executable, '-c', {doctor!r}])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert "permits seccomp()" in done.stdout


def test_strict_is_reached_by_landlock_where_namespaces_are_forbidden() -> None:
    layers = frozenset(LAYERS) - {"namespaces"}
    with SandboxPool(level="best_effort", layers=layers) as pool:
        found = pool.facilities
    if found.landlock_abi < 6 or not found.seccomp:
        pytest.skip(f"this machine has only {', '.join(found.parts())}")
    assert not found.empty_root and not found.namespaces
    with SandboxPool(layers=layers) as pool:
        assert pool.isolation.startswith("strict (")


def test_the_level_none_is_named_in_every_report() -> None:
    with SandboxPool(level="none") as pool:
        assert pool.isolation.startswith("none")
        assert not pool.facilities.seccomp and not pool.facilities.landlock_abi


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    parser = argparse.ArgumentParser()
    command.configure(parser)
    code = command.run(parser.parse_args(words))
    return code, capsys.readouterr().out


def test_the_doctor_prints_the_level_and_what_makes_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(capsys)
    with SandboxPool(level="best_effort") as pool:
        found = pool.facilities
    assert f"isolation  {found.level()}" in text
    for part in found.parts():
        assert f"+ {part}" in text
    assert code == (0 if found.level() == "strict" else HostError.exit_code)


def test_the_doctor_s_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    _, text = run(capsys, "--json", "--self-check")
    report = json.loads(text)
    assert {"machine", "level", "facilities", "missing", "self_check"} <= set(report)
    assert len(report["self_check"]) == len(selfcheck.PROBES) * (len(LAYERS) + 2)
    assert all(row["ok"] for row in report["self_check"])


def test_a_broken_installation_is_told_apart_from_a_weak_machine(
    tmp_path: Path, repository: Path
) -> None:
    # An interpreter that can't import the runtime's half must say so at once, and not hang.
    program = (
        "import sys\n"
        f"sys.path.insert(0, {str(repository)!r})\n"
        "from spade_runtime.sandbox import launch, pool\n"
        "launch._import_paths = lambda: ['/nowhere']\n"
        "try:\n    pool.SandboxPool()\nexcept Exception as e:\n    print(type(e).__name__, e)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.stdout.startswith("HostError the sandbox's zygote did not start"), done
    assert "spade_runtime" in done.stdout
