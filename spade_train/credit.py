"""From plays to training rows: who earned what (training.md sections 2 and 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spade_train import metrics
from spade_train.advantages import agent_advantages, designer_advantages, is_equal
from spade_train.config import RunConfig
from spade_train.learners.base import TrainRow
from spade_train.plays import Play
from spade_train.population import Design
from spade_train.rewards import SeedReturn
from spade_train.state import RunState


def take_in(
    state: RunState, config: RunConfig, step: int, plays: Sequence[Sequence[Play]]
) -> dict[str, Any]:
    """Add a step's plays to their designs' windows.

    Returns:
        The regret at the pool's first step, the share in the learnable band at its last one.
    """
    designs = {design.name: design for design in state.pool}
    for group in filter(None, plays):
        design = designs[group[0].group.name]
        returns = [SeedReturn(play.seed, play.value(config.return_mode)) for play in group]
        design.faults += sum(play.charged for play in group)
        if group[0].group.arm == "hinted":
            design.hinted = returns
            continue
        design.solved += [None if play.fault else play.solved for play in group]
        design.returns += [pair.value for pair in returns]
        if step == design.made:
            design.unhinted = returns
    news = metrics.of_regret(state.pool, config) if step == state.made else {}
    last = (step + 1) % config.regenerate_every == 0 or step + 1 == config.steps
    return news | (metrics.of_closed_window(state.pool) if last else {})


def agent_rows(
    plays: Sequence[Sequence[Play]], config: RunConfig, step: int, version: int
) -> tuple[list[TrainRow], dict[str, Any]]:
    """Weigh unhinted plays within their environment; hinted and void ones never train."""
    rows: list[TrainRow] = []
    groups = [group for group in plays if group and group[0].group.arm == "unhinted"]
    equal = 0
    for group in groups:
        returns = [play.value(config.return_mode) for play in group]
        equal += is_equal([value for value in returns if value is not None])
        for index, (play, gain) in enumerate(zip(group, agent_advantages(returns), strict=True)):
            if gain is not None:
                name = f"{step}-{play.group.name}-{index}"
                rows += [
                    TrainRow.of(
                        sample, role="agent", advantage=gain, version=version, sample_id=name
                    )
                    for sample in play.samples
                ]
    return rows, {"agent/groups": len(groups), "agent/groups_equal": equal}


def designer_rows(
    state: RunState, config: RunConfig, due: float
) -> tuple[list[TrainRow], dict[str, Any]]:
    """Pay the designs whose delay is over, and let them go.

    Args:
        state: its `designs` are parted in those that are paid and those that wait on.
        config: of the step.
        due: the step; infinite at the run's end.
    """
    ripe = [d for d in state.designs if d.made + config.designer_delay <= due]
    if not ripe:
        return [], {}
    state.designs = [d for d in state.designs if d.made + config.designer_delay > due]
    acceptance = [state.acceptance.pop(made) for made in sorted({d.made for d in ripe})]
    judged, news = _paid(state, config, ripe)
    rewards = [reward for _, reward in judged]
    if not config.train_designer or not judged:
        return [], news
    lowest = min((share for share in acceptance if share is not None), default=1.0)
    if lowest < config.acceptance_floor:
        return [], news | {"guards/designer_below_floor": 1}
    if is_equal(rewards):
        return [], news | {"guards/designer_equal": 1}
    skills = [design.skill for design, _ in judged]
    gains = designer_advantages(rewards, skills, scale=config.designer_scale).tolist()
    pairs = zip(judged, gains, strict=True)
    return [row for (design, _), gain in pairs for row in design.rows(gain)], news


def _paid(
    state: RunState, config: RunConfig, ripe: Sequence[Design]
) -> tuple[list[tuple[Design, float]], dict[str, Any]]:
    """Return the designs that get a reward; one that can't be judged is paid as an invalid one.

    Where it was the host's failures that left nothing to judge by, it is neither paid nor counted.
    """
    outcomes = [design.outcome(config.seed_pairing) for design in ripe if design.valid]
    scores = state.objective.score(outcomes)
    by_design = iter(scores)
    invalid = None if config.invalid_reward == "none" else float(config.invalid_reward)
    judged = []
    for design in ripe:
        score = next(by_design) if design.valid else None
        if score is None and design.excused:
            continue
        reward = invalid if score is None else score
        if reward is not None:
            judged.append((design, reward))
    known = [score for score in scores if score is not None]
    return judged, {
        "designer/reward_raw": sum(known) / len(known) if known else None,
        "designer/samples": len(judged),
        "designer/unjudged": len(scores) - len(known),
    }
