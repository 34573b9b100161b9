"""The tree keeps its shape: fixed top-level folders, no empty rooms, no machine's own paths."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {
    ".ci",
    "benchmarks",
    "docs",
    "schemas",
    "spade_envs",
    "spade_runtime",
    "spade_train",
    "tests",
}
LONGEST_MODULE = 400


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip(f"no git checkout here: {listed.stderr.strip()}")
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def test_top_level_folders_are_the_agreed_ones() -> None:
    seen = {path.relative_to(ROOT).parts[0] for path in _tracked() if path.parent != ROOT}
    assert seen <= FOLDERS


def test_the_map_of_rooms_is_the_tree() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:spade_\w+|schemas|benchmarks|tests|docs)/(?:\w+/)?)`", text))
    assert [name for name in sorted(named) if not (ROOT / name).is_dir()] == []
    rooms = {path.parent for path in _tracked() if path.suffix == ".py"}
    packages = {room.relative_to(ROOT).as_posix() + "/" for room in rooms if room != ROOT}
    inner = {name for name in packages if re.fullmatch(r"spade_\w+/\w+/", name)}
    assert inner and sorted(inner - named) == []


def test_no_module_is_empty_and_none_grows_past_the_limit() -> None:
    names = {path.relative_to(ROOT).as_posix(): path for path in _tracked()}
    in_packages = {
        name: path.read_text(encoding="utf-8")
        for name, path in names.items()
        if name.startswith("spade_") and name.endswith(".py")
    }
    assert in_packages
    assert [name for name, text in in_packages.items() if not text.strip()] == []
    long = {n: lines for n, t in in_packages.items() if (lines := t.count("\n")) > LONGEST_MODULE}
    assert long == {}


def test_no_committed_text_holds_a_path_of_a_machine() -> None:
    pattern = re.compile(r"(^|[^\w.])/(work|farm|root|home/\w+)/")
    here = Path(__file__)
    hits = []
    for path in _tracked():
        if path == here or path.suffix in {".safetensors", ".png", ".gz"}:
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if pattern.search(line):
                hits.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert hits == []
