"""Rollouts of the embedded policy: time outside the policy, and plays a second beside a plain loop.

    python benchmarks/rollout.py [--model DIR] [--workers 1] [--json FILE] [--quick]

The plays are those of one step of `--preset tiny`. `overhead` is the time of a rollout outside
calls of the policy, as a share of the time inside them: by the wall clock, and by this process's
processor time, which other load on the machine does not stretch. `parts` says where it goes: the
main thread's parts and the policy add up to the wall clock, and the threads' work goes on beside
them. `episodes_per_second` is measured for the rollout engine and, in the same run, for a plain
loop that plays one episode after the other. `kept_prefixes` is how much faster the policy takes
turns of long conversations because it keeps what it has read. `functions`, of a pass of its own,
names the functions outside the policy that cost this process most.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import sys
import threading
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


class Clocked:
    """A policy's engine that counts the time spent in it."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.clear()

    def clear(self) -> None:
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


def timed_rollout() -> Any:
    """The rollout engine with a clock at its seams."""
    from spade_train.rollout import Rollout

    class Timed(Rollout):
        """Adds up where the time outside the policy goes, in seconds."""

        clock: Clocked

        def clear(self) -> None:
            self.waited = self.waited_first = self.asked = self.opening = self.going_on = 0.0
            self.lock = threading.Lock()

        def _wait(self, jobs: Any) -> None:
            first, start = not self.waited, time.perf_counter()
            super()._wait(jobs)
            self.waited += time.perf_counter() - start
            if first:
                self.waited_first = self.waited

        def _answer(self, *arguments: Any) -> Any:
            start, inside = time.perf_counter(), self.clock.wall
            answered = super()._answer(*arguments)
            self.asked += time.perf_counter() - start - (self.clock.wall - inside)
            return answered

        def _begin(self, *arguments: Any) -> None:
            start = time.thread_time()
            super()._begin(*arguments)
            with self.lock:
                self.opening += time.thread_time() - start

        def _go_on(self, *arguments: Any) -> None:
            start = time.thread_time()
            super()._go_on(*arguments)
            with self.lock:
                self.going_on += time.thread_time() - start

    return Timed


def preset() -> Any:
    from spade_train.presets import resolve

    return resolve("tiny", overrides=["setting=games"])


def groups_of(environments: int, plays: int, hinted: int) -> list[Any]:
    """Held-out environments of the embedded policy, without and with their hints."""
    from spade_envs.manifest import source_hash
    from spade_train.plays import Group
    from spade_train.seeds import environment_seeds
    from spade_train.tiny.heldout import environments as heldout

    chosen = [e for e in heldout() if e.kind == "game"][:environments]
    groups = []
    for environment in chosen:
        seeds = environment_seeds(plays, "benchmark", environment.name)
        source = environment.source
        common = (environment.name, source_hash(source), source, environment.kind)
        groups += [Group(*common, seeds), Group(*common, seeds[:hinted], environment.hint)]
    return groups


def concurrent(sandbox: Any, policy: Any, groups: list[Any], profile: bool) -> dict[str, Any]:
    from spade_train.ledger import Ledger

    clock = policy.engine = Clocked(policy.engine)
    player = timed_rollout()(sandbox, policy, settings(), Ledger())
    player.clock = clock
    player.clear()
    for group in groups:
        # In a run, validation has read every source before it is played.
        sandbox.open(group.source).close()
    player.play(groups[:4], "warm")
    player.clear()
    clock.clear()
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
        "parts": {
            "main thread": {
                "waiting for the first children": player.waited_first,
                "waiting for children later": player.waited - player.waited_first,
                "asking the policy": player.asked,
                "beginning and ending": wall - clock.wall - player.waited - player.asked,
            },
            "threads, processor time": {
                "opening children, first prompts": player.opening,
                "replies, steps, checks": player.going_on,
            },
        },
    }
    if profile:
        found["functions"] = hot(profiler)
    return found


LONG = '''class LongEnv(TextEnv):
    """Say something, often."""

    skill = "memory_recall"
    max_turns = {turns}

    def reset(self, seed=None):
        self.rng, self.turn = random.Random(seed), 0
        return f"Round 1. Case {{self.rng.randrange(100)}}. Say red, blue or green.", {{}}

    def step(self, action):
        self.turn += 1
        text = f"Round {{self.turn + 1}}. Case {{self.rng.randrange(100)}}. Say red, blue or green."
        return text, 0.0, False, self.turn >= {turns}, {{}}
'''


def kept_prefixes(sandbox: Any, policy: Any, plays: int, turns: int = 12) -> dict[str, Any]:
    """Turns a second of processor time in the policy, with and without what it keeps."""
    from dataclasses import replace

    from spade_train.ledger import Ledger
    from spade_train.plays import Group
    from spade_train.rollout import Rollout

    class Forgetful:
        """Reads every conversation from its start at each turn."""

        def __init__(self, engine: Any) -> None:
            self.engine = engine

        def generate(self, request: Any) -> Any:
            return self.engine.generate(replace(request, names=None))

        def forget(self) -> None:
            pass

    source = LONG.format(turns=turns)
    groups = [Group(f"long-{i}", "0" * 64, source, "game", list(range(plays))) for i in range(8)]
    engine, stops, limit = policy.engine, policy.stop_ids, policy.context_tokens
    # Every second token ends a reply, so that what was said before is most of the work.
    policy.stop_ids = frozenset(range(0, len(policy.tokenizer), 2))
    policy.context_tokens = 1024
    rates = {}
    for name, own in (("kept", engine), ("anew", Forgetful(engine))):
        clock = policy.engine = Clocked(own)
        player = Rollout(
            sandbox, policy, replace(settings(), max_turns=turns, context_tokens=1024), Ledger()
        )
        said = player.play(groups, "long")
        turns_taken = sum(len(play.replies) for group in said for play in group)
        rates[name] = turns_taken / clock.processor
    policy.engine, policy.stop_ids, policy.context_tokens = engine, stops, limit
    return {
        "turns_per_processor_second": rates["kept"],
        "without": rates["anew"],
        "times_as_fast": rates["kept"] / rates["anew"],
    }


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

    config = preset()
    sampling = Sampling(
        config.temperature, config.top_p, config.top_k, max_tokens=config.agent_max_tokens
    )
    return RolloutSettings(
        "compact", sampling, max_turns=config.max_turns, context_tokens=config.context_tokens
    )


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
    parser.add_argument("--sequential", type=int, default=96, help="episodes of the plain loop")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few plays: a smoke test")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    config = preset()
    environments, plays, hinted = config.environments, config.group_plays, config.hinted_plays
    if arguments.quick:
        environments, plays, hinted, arguments.sequential = 6, 4, 4, 8

    from spade_runtime.sandbox import SandboxPool
    from spade_train import tiny
    from spade_train.crew import Crew

    policy = tiny.load(arguments.model)
    policy.limit_context(config.context_tokens)
    groups = groups_of(environments, plays, hinted)
    with SandboxPool() as sandbox, Crew(policy.model, None, arguments.workers) as crew:
        alone = policy.engine
        policy.engine = crew
        found = {
            "workers": arguments.workers,
            "concurrent": concurrent(sandbox, policy, groups, profile=False),
        }
        found["functions"] = concurrent(sandbox, policy, groups, profile=True)["functions"]
        found["kept_prefixes"] = kept_prefixes(sandbox, policy, plays)
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
