"""`spade tiny`: build the embedded policy from nothing, or measure one."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from spade_runtime.cli import Command, add_isolation

if TYPE_CHECKING:
    from spade_train.tiny.measure import Measures

STEPS, EASY, DRILLS, ENVIRONMENTS = 4000, 550, 1150, 2400


def _configure(parser: argparse.ArgumentParser) -> None:
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    build = tasks.add_parser("build", help="train the embedded policy from nothing")
    build.add_argument("--out", type=Path, required=True, help="folder to write; must be empty")
    build.add_argument("--seed", type=int, default=0)
    build.add_argument("--steps", type=int, default=STEPS, help=f"training steps ({STEPS})")
    build.add_argument("--easy-steps", type=int, default=EASY, help=f"end of the first ({EASY})")
    build.add_argument(
        "--drill-steps", type=int, default=DRILLS, help=f"end of the second stage ({DRILLS})"
    )
    build.add_argument(
        "--environments", type=int, default=ENVIRONMENTS, help=f"played by script ({ENVIRONMENTS})"
    )
    build.add_argument("--layers", type=int, help="of the decoder")
    build.add_argument("--width", type=int, help="of the decoder, a multiple of 32")
    build.add_argument("--threads", type=int, default=2, help="of torch (2)")
    measure = tasks.add_parser("measure", help="acceptance of designs, and held-out win rates")
    measure.add_argument(
        "--model", type=Path, help="a folder that `build` or a run wrote; else what ships"
    )
    measure.add_argument("--designs", type=int, default=96, help="designs to ask for (96)")
    measure.add_argument("--json", action="store_true", help="print JSON")
    measure.add_argument("overrides", nargs="*", metavar="key=value", help="over the preset tiny")

    for task in (build, measure):
        add_isolation(task)


def _run(arguments: argparse.Namespace) -> int:
    return {"build": _build, "measure": _measure}[arguments.task](arguments)


def _measure(arguments: argparse.Namespace) -> int:
    import json
    from dataclasses import asdict

    from spade_runtime.sandbox import SandboxPool
    from spade_runtime.validation import Validator
    from spade_train import tiny
    from spade_train.presets import resolve
    from spade_train.tiny.measure import measure

    words = [*arguments.overrides, f"environments={arguments.designs}"]
    config = resolve("tiny", overrides=words)
    level = arguments.isolation
    with SandboxPool(level=level) as pool, Validator(pool=pool, level=level) as validator:
        found = measure(tiny.load(arguments.model), config, pool, validator)
    if arguments.json:
        print(json.dumps(asdict(found), indent=2))
        return 0
    print(told(found))
    return 0


def told(found: Measures) -> str:
    """Return the measures as an aligned table."""
    from spade_train.told import percent

    held = found.heldout

    def rate(key: str) -> str:
        value, error = held.get(key), held.get(f"{key}_se")
        if value is None:
            return "-"
        return percent(value) if error is None else f"{percent(value)} ± {percent(error)}"

    refused = ", ".join(f"{code} {count}" for code, count in sorted(found.refusals.items()))
    rows = [
        ("designs accepted", f"{percent(found.acceptance)} of {found.designs}"),
        ("refused by", refused or "-"),
        ("accepted with a hint", percent(found.hints)),
        (f"held-out wins ({held.get('environments')} environments)", rate("win_rate")),
        ("  with the hint", rate("win_rate_hinted")),
        ("  any option on show", percent(found.random)),
        ("  reference solutions", percent(found.scripted)),
    ]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def _build(arguments: argparse.Namespace) -> int:
    import torch

    from spade_runtime.sandbox import SandboxPool
    from spade_train.corpus import Corpus
    from spade_train.tiny.build import build
    from spade_train.tiny.model import Shape
    from spade_train.tiny.warmstart import Recipe

    torch.set_num_threads(arguments.threads)
    usual = Shape()
    width = arguments.width or usual.width
    shape = Shape(arguments.layers or usual.layers, width, width // 32, 7 * width // 2)
    recipe = Recipe(
        steps=arguments.steps,
        easy_steps=arguments.easy_steps,
        drill_steps=arguments.drill_steps,
        seed=arguments.seed,
    )
    with SandboxPool(level=arguments.isolation) as pool:
        built = build(
            arguments.out,
            pool,
            Corpus.open(["builtin"], max_words=200),
            recipe,
            shape=shape,
            environments=arguments.environments,
            progress=_Progress(),
        )
    print(
        f"{built.folder}: {built.parameters:,} parameters, {built.vocabulary} tokens; last losses "
        + ", ".join(f"{name} {loss:.3f}" for name, loss in sorted(built.losses.items()))
    )
    return 0


class _Progress:
    """One line a stage on stderr, with rate and time left; redrawn only on a terminal."""

    def __init__(self) -> None:
        self.stage = ""
        self.began = self.shown = 0.0
        self.first = 0

    def __call__(self, stage: str, done: int, total: int, note: str) -> None:
        now = time.monotonic()
        if stage != self.stage:
            self.stage, self.began, self.first, self.shown = stage, now, done - 1, 0.0
        terminal = sys.stderr.isatty()
        if done < total and now - self.shown < (0.2 if terminal else 20.0):
            return
        self.shown = now
        line = f"{stage}: {done}/{total}  {note}"
        if elapsed := now - self.began:
            rate = (done - self.first) / elapsed
            line = (
                f"{stage}: {done}/{total}  {rate:.1f}/s  {(total - done) / rate:.0f} s left  {note}"
            )
        end = "\n" if not terminal or done == total else ""
        print(("\r\x1b[K" if terminal else "") + line, end=end, file=sys.stderr, flush=True)


command = Command(
    "tiny",
    "build the embedded policy from nothing",
    _configure,
    _run,
    "The embedded policy is a decoder of some hundred thousand parameters that writes small "
    "environments and plays them. `spade tiny build --out FOLDER` trains it from nothing on data "
    "that the project generates: scripted play in the sandbox, designs, and hints.",
)
