"""Self-play (training.md section 1): one model designs environments and learns in them.

Nothing here knows torch, a chat template or a process: each line calls a part that is tested alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

from spade_train import metrics
from spade_train.config import RunConfig
from spade_train.credit import agent_rows, designer_rows, take_in
from spade_train.divergence import heed_thrown_updates, tell_of_bad_end
from spade_train.errors import PolicyRefused, PolicyUnavailable
from spade_train.learners.base import ROLES, Learner, TrainBatch, TrainRow
from spade_train.plays import Group, Play
from spade_train.records import Records
from spade_train.regeneration import Designer
from spade_train.rollout import Rollout
from spade_train.seeds import environment_seeds
from spade_train.state import RunState


class Watcher(Protocol):
    """Told how a run gets on, for a progress bar."""

    def phase(self, name: str) -> None:
        """Another part of a step begins."""
        ...

    def step_done(self, line: dict[str, Any]) -> None:
        """A step has ended with this line of metrics."""
        ...


@dataclass(slots=True)
class Run:
    """The parts of a run, put together by `assemble`.

    Attributes:
        config: of the whole run; phases are applied step by step.
        state: what is carried from step to step.
        designer: writes pools.
        rollout: plays the pool; makes the rollout of a step's configuration.
        learner: owns the weights.
        configure: hands a step's configuration to learner and policies.
        records: the run folder's files.
        measure: plays the held-out environments and returns metrics.
        watcher: of the progress.
        should_stop: asked at each step's end.
        replay: rows of a step that are given, not sampled, to hold the weights' writing in place.
        warn: told what went wrong where the run can go on.
    """

    config: RunConfig
    state: RunState
    designer: Designer
    rollout: Callable[[RunConfig], Rollout]
    learner: Learner
    configure: Callable[[RunConfig], None]
    records: Records
    measure: Callable[[RunConfig, int], dict[str, Any]]
    watcher: Watcher
    should_stop: Callable[[], bool] = lambda: False
    replay: Callable[[int], list[TrainRow]] = lambda _: []
    warn: Callable[[str], None] = lambda _: None


def train(run: Run) -> bool:
    """Run self-play to its end, or until it is asked to stop at a step's end.

    Returns:
        Whether the run is complete.
    """
    state = run.state
    while state.step < run.config.steps:
        if run.should_stop():
            if state.step not in run.records.checkpoints.steps():
                run.records.checkpoint(state, run.learner, run.config, force=True)
            return False
        start, step, config = perf_counter(), state.step, run.config.at(state.step)
        run.configure(config)
        news = _measure(run, config, step)
        if step % config.regenerate_every == 0:
            news |= _replace_pool(run, config, step)
        plays = _play(run, config, step)
        news |= metrics.of_plays(plays, config) | take_in(state, config, step, plays)
        agent, groups = agent_rows(plays, config, step, run.learner.version)
        designer, paid = designer_rows(state, config, due=step)
        news |= groups | paid | _update(run, agent + designer + run.replay(step), step)
        state.step += 1
        line = metrics.line(step, perf_counter() - start, news, state.ledger.metrics())
        run.records.step(step, line, plays, config, state.pool)
        run.records.checkpoint(state, run.learner, config)
        run.watcher.step_done(line)
    if not state.flushed:
        _finish(run)
    return True


def _finish(run: Run) -> None:
    """Flush the last windows to the designer, and measure the agent once more."""
    state, start, step = run.state, perf_counter(), run.config.steps
    config = run.config.at(step)
    run.configure(config)
    _remember(state, config)
    rows, news = designer_rows(state, config, due=math.inf)
    news |= _update(run, rows, step)
    state.flushed = True
    news |= _measure(run, config, step) | {"flush": True}
    line = metrics.line(step, perf_counter() - start, news, state.ledger.metrics())
    run.records.step(step, line, [], config)
    run.records.checkpoint(state, run.learner, config, force=True)
    run.watcher.step_done(line)
    tell_of_bad_end(state, run.warn)


def _measure(run: Run, config: RunConfig, step: int) -> dict[str, Any]:
    every = config.heldout_every
    if not every or (step % every and step < run.config.steps):
        return {}
    run.watcher.phase("measuring")
    return run.measure(config, step)


def _replace_pool(run: Run, config: RunConfig, step: int) -> dict[str, Any]:
    """Put the old pool into the memory and write a new one."""
    state = run.state
    _remember(state, config)
    run.watcher.phase("designing")
    try:
        made, state.documents = run.designer.regenerate(
            config, step, state.memory, state.documents, run.learner.version
        )
    except (PolicyUnavailable, PolicyRefused) as error:
        if error.tries:
            place = run.records.folder.rescue_designs(step, (t.to_json() for t in error.tries))
            run.warn(f"the designs that were written are in {place}")
        raise
    state.designs += made.pool + made.invalid
    state.made = step
    state.acceptance[step] = made.acceptance
    run.records.regeneration(made, config)
    return metrics.of_regeneration(made)


def _remember(state: RunState, config: RunConfig) -> None:
    for design in state.pool:
        if (record := design.record(config.seed_pairing)) is not None:
            state.memory.add(record)


def _play(run: Run, config: RunConfig, step: int) -> list[list[Play]]:
    """Play the pool; at its first step with the hint too, on the same seeds in another child."""
    run.watcher.phase("playing")
    groups = []
    for design in run.state.pool:
        labels = (config.seed, step, design.name)
        seeds = _repeated(environment_seeds(config.seeds_per_group, *labels), config)
        common = (design.name, design.sha256, design.source, design.kind)
        groups.append(Group(*common, seeds))
        if step == design.made and design.hint is not None and config.hinted_plays:
            if config.seed_pairing == "independent":
                own = environment_seeds(config.seeds_per_group, *labels, "hinted")
                seeds = _repeated(own, config)
            groups.append(Group(*common, seeds[: config.hinted_plays], design.hint))
    try:
        return run.rollout(config).play(groups, config.seed, step)
    except PolicyUnavailable as error:
        run.records.rescued(step, error.plays, config)
        raise


def _repeated(seeds: Sequence[int], config: RunConfig) -> list[int]:
    return [seed for seed in seeds for _ in range(config.plays_per_seed)]


def _update(run: Run, rows: Sequence[TrainRow], step: int) -> dict[str, Any]:
    """One update over both roles.

    Raises:
        Diverged: the last updates all had to be thrown away.
    """
    state = run.state
    run.watcher.phase("learning")
    news = run.learner.update(TrainBatch(rows, step))
    run.learner.sync()
    for role in ROLES:
        for key, passes in (("trained_tokens", 1), ("forward_tokens", 0)):
            tokens = int(news.get(f"{key}/{role}") or 0)
            state.ledger.trained(role, tokens, passes=passes, forwards=1 - passes)
    heed_thrown_updates(state, news, step, run.warn)
    return news
