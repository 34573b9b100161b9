"""What plays told of the environments in play, as the cards of the run's pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from spade_envs.pool import Pool
from spade_envs.pool_index import Card
from spade_train.plays import Play
from spade_train.population import Design
from spade_train.rewards import Pairing, hint_regret, win_rate


def write_cards(
    root: Path,
    designs: Sequence[Design],
    plays: Sequence[Sequence[Play]],
    *,
    pairing: Pairing,
    policy: str,
    step: int,
) -> None:
    """Write what is known by now of each environment in play beside its source.

    A source that an earlier pool held too keeps the newest one's figures alone; one that two slots
    hold now has those of both.

    Args:
        root: of the run's pool.
        designs: those in play, with all that their plays told.
        plays: of this step; with the hint at the designs' first step.
        pairing: how the regret is reckoned.
        policy: who played.
        step: of the run.
    """
    if not designs:
        return
    pool = Pool(root, create=True)
    by_source: dict[str, list[Design]] = {}
    for design in designs:
        by_source.setdefault(design.sha256, []).append(design)
    for sha256, same in by_source.items():
        # Someone may have taken an environment out of the pool; the run has no need of it there.
        if sha256 not in pool:
            continue
        hinted = _hinted(pool.card(sha256), plays, sha256, same[0].made)
        solved = [won for design in same for won in design.solved]
        paired = [design for design in same if design.hinted]
        regret = hint_regret(
            [pair for design in paired for pair in design.hinted],
            [pair for design in paired for pair in design.unhinted],
            pairing=pairing,
        )
        card = Card(
            plays=sum(won is not None for won in solved),
            win_rate=win_rate(solved),
            win_rate_hinted=hinted,
            regret=regret.value,
            regret_se=regret.standard_error,
            policy=policy or None,
            step=step,
        )
        pool.measure(sha256, card)


def _hinted(
    before: Card | None, plays: Sequence[Sequence[Play]], sha256: str, made: int
) -> float | None:
    """Return the win rate with the hint: of this step's plays, or as the first step's card says."""
    if now := list(_solved_with_hint(plays, sha256)):
        return win_rate(now)
    fresh = before is not None and before.step is not None and before.step >= made
    return before.win_rate_hinted if before is not None and fresh else None


def _solved_with_hint(plays: Sequence[Sequence[Play]], sha256: str) -> Iterator[bool | None]:
    for group in plays:
        for play in group:
            if play.group.arm == "hinted" and play.group.sha256 == sha256:
                yield None if play.fault else play.solved
