"""Rollouts of the embedded policy: time outside the policy, and plays a second beside a plain loop.

    python benchmarks/rollout.py [--model DIR] [--plays 12] [--workers 1] [--json FILE] [--quick]

Three figures. `overhead` is the time of a rollout outside calls of the policy, as a share of the
time inside them: by the wall clock, and by this process's processor time, which other load on the
machine does not stretch. `episodes_per_second` is measured for the rollout engine and, in the same
run, for a plain loop that plays one episode after the other. `profile`, of a pass of its own, names
where this process's time outside the policy goes.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


class Clocked:
    """A policy's engine that counts the time spent in it."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.wall = self.processor = 0.0
        self.calls = 0

    def generate(self, request: Any) -> Any:
        wall, processor = time.perf_counter(), time.process_time()
        replies = self.engine.generate(request)
        self.wall += time.perf_counter() - wall
        self.processor += time.process_time() - processor
        self.calls += 1
        return replies

    def forget(self) -> None:
        self.engine.forget()


def groups_of(environments: int, plays: int) -> list[Any]:
    """Held-out environments of the embedded policy, without and with their hints."""
    from spade_train.plays import Group
    from spade_train.seeds import environment_seeds
    from spade_train.tiny.heldout import environments as heldout

    chosen = [e for e in heldout() if e.kind == "game"][:environments]
    groups = []
    for environment in chosen:
        seeds = environment_seeds(plays, "benchmark", environment.name)
        common = (environment.name, "", environment.source, environment.kind, seeds)
        groups += [Group(*common), Group(*common, environment.hint)]
    return groups


def concurrent(sandbox: Any, policy: Any, groups: list[Any], profile: bool) -> dict[str, Any]:
    from spade_train.ledger import Ledger
    from spade_train.rollout import Rollout

    player = Rollout(sandbox, policy, settings(), Ledger())
    player.play(groups[:4], "warm")
    clock = policy.engine = Clocked(policy.engine)
    profiler = cProfile.Profile()
    wall, processor = time.perf_counter(), time.process_time()
    if profile:
        profiler.enable()
    plays = player.play(groups, "measured")
    profiler.disable()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    policy.engine = clock.engine
    count = sum(len(group) for group in plays)
    found: dict[str, Any] = {
        "episodes": count,
        "turns": sum(len(play.replies) for group in plays for play in group),
        "seconds": wall,
        "policy_seconds": clock.wall,
        "overhead_wall": (wall - clock.wall) / clock.wall,
        "processor_seconds": processor,
        "policy_processor_seconds": clock.processor,
        "overhead_processor": (processor - clock.processor) / clock.processor,
        "policy_calls": clock.calls,
        "episodes_per_second": count / wall,
        "void": sum(play.fault is not None for group in plays for play in group),
    }
    if profile:
        found["profile"] = hot(profiler)
    return found


def sequential(sandbox: Any, policy: Any, groups: list[Any], episodes: int) -> dict[str, Any]:
    """One child, one episode, one prompt at a time: what a first script would do."""
    from spade_runtime.messages import with_hint
    from spade_train.prompts import agent_messages
    from spade_train.tokens import Dialogue

    done, wall = 0, time.perf_counter()
    while done < episodes:
        group = groups[done % len(groups)]
        with sandbox.open(group.source) as session:
            seed = group.seeds[done // len(groups)]
            start = session.reset([seed], max_turns=settings().max_turns)[0]
            observation = with_hint(start.observation, group.hint)
            dialogue = Dialogue(policy, agent_messages("compact", observation))
            turn = 0
            while True:
                reply = policy.generate([dialogue.prompt], settings().sampling, [done * 99 + turn])
                text = dialogue.reply(reply[0])
                if reply[0].finish == "length":
                    break
                result = session.step([text])[0]
                if result.terminated or result.truncated:
                    break
                dialogue.answer([{"role": "user", "content": result.observation}])
                turn += 1
        done += 1
    wall = time.perf_counter() - wall
    return {"episodes": done, "seconds": wall, "episodes_per_second": done / wall}


def settings() -> Any:
    from spade_train.policies.base import Sampling
    from spade_train.rollout import RolloutSettings

    sampling = Sampling(max_tokens=16)
    return RolloutSettings("compact", sampling, max_turns=8, context_tokens=512)


def hot(profiler: cProfile.Profile, count: int = 12) -> list[str]:
    """The functions outside the policy that cost this process the most time by themselves."""
    rows = []
    for (file, line, name), (_, calls, own, _, _) in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        policy = any(part in file for part in ("torch", "transformers", "generate.py", "sampling"))
        if not policy and "torch" not in name and "_C" not in name:
            rows.append((own, f"{own:.3f} s in {calls} calls: {Path(file).name}:{line} {name}"))
    return [text for _, text in sorted(rows, reverse=True)[:count]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="default: the embedded policy")
    parser.add_argument("--environments", type=int, default=24)
    parser.add_argument("--plays", type=int, default=12, help="of each arm of each environment")
    parser.add_argument("--sequential", type=int, default=96, help="episodes of the plain loop")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few plays: a smoke test")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.environments, arguments.plays, arguments.sequential = 6, 4, 8

    from spade_runtime.sandbox import SandboxPool
    from spade_train import tiny
    from spade_train.crew import Crew

    policy = tiny.load(arguments.model)
    policy.limit_context(512)
    groups = groups_of(arguments.environments, arguments.plays)
    with SandboxPool() as sandbox, Crew(policy.model, None, arguments.workers) as crew:
        alone = policy.engine
        policy.engine = crew
        found = {
            "workers": arguments.workers,
            "concurrent": concurrent(sandbox, policy, groups, profile=False),
        }
        profiled = concurrent(sandbox, policy, groups, profile=True)
        found["profile"] = profiled["profile"]
        policy.engine = alone
        found["sequential"] = sequential(sandbox, policy, groups, arguments.sequential)
    ratio = found["concurrent"]["episodes_per_second"] / found["sequential"]["episodes_per_second"]
    found["times_as_fast"] = ratio
    text = json.dumps(found, indent=2)
    if arguments.json:
        arguments.json.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
