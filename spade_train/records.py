"""What a run writes while it runs: metrics, designs, episodes, the pool, checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from spade_envs.pool import Pool
from spade_envs.pool_index import Card
from spade_runtime import __version__
from spade_runtime.errors import SpadeError
from spade_runtime.records import Records as Verdicts
from spade_runtime.spec import EnvSpec, Provenance, ValidationReport, ValidationSummary
from spade_train.config import RunConfig
from spade_train.learners.base import Learner
from spade_train.plays import Play
from spade_train.pool_cards import write_cards
from spade_train.population import Design
from spade_train.run_folder import RunFolder
from spade_train.state import Checkpoints, RunState
from spade_train.tries import Regeneration


class Records:
    """Writes a run's folder.

    Args:
        folder: of the run.
        designer: name of the policy that designs, for provenance.
        warn: told what went wrong where the run can go on.
        agent: name of the policy that plays, for the pool's cards.
    """

    def __init__(
        self,
        folder: RunFolder,
        designer: str,
        warn: Callable[[str], None] = lambda _: None,
        agent: str = "",
    ) -> None:
        self.folder = folder
        self.checkpoints = Checkpoints(folder.checkpoints)
        self._designer = designer
        self._agent = agent
        self._warn = warn
        # Whether the last checkpoint that was due could not be written.
        self._failing = False

    def step(
        self,
        step: int,
        line: Mapping[str, Any],
        plays: Sequence[Sequence[Play]],
        config: RunConfig,
        pool: Sequence[Design] = (),
    ) -> None:
        """Write a step's episodes and the cards of the pool in play, then its line of metrics."""
        if plays:
            episodes = (
                p.to_json(step, config.return_mode, config.max_turns)
                for group in plays
                for p in group
            )
            self.folder.write_episodes(step, episodes)
        write_cards(
            self.folder.pool,
            pool,
            plays,
            pairing=config.seed_pairing,
            policy=self._agent,
            step=step,
        )
        self.folder.append(self.folder.metrics, [line])

    def heldout(self, step: int, plays: Sequence[Sequence[Play]], config: RunConfig) -> None:
        """Keep a measurement's plays, so that it can be told by family and with an interval."""
        lines = (
            p.to_json(step, config.return_mode, config.max_turns) for group in plays for p in group
        )
        self.folder.write_episodes(step, lines, prefix="heldout")

    def rescued(self, step: int, plays: Iterable[Play], config: RunConfig) -> None:
        """Keep the plays that had ended when a policy gave up."""
        lines = (play.to_json(step, config.return_mode, config.max_turns) for play in plays)
        path = self.folder.write_episodes(step, lines, prefix="rescued")
        self._warn(f"the plays that had ended are in {path}")

    def regeneration(self, made: Regeneration, config: RunConfig) -> None:
        """Write every try, the accepted environments into the pool, and that they were accepted."""
        self.folder.append(self.folder.designs, (t.to_json() for t in made.tries))
        accepted = {t.slot: t for t in made.tries if t.accepted}
        items: list[tuple[str | bytes, EnvSpec, Card | None]] = []
        for design in made.pool:
            report = accepted[design.slot].report
            if report is not None:
                items.append((design.source, self._manifest(design, report), None))
        if items:
            stored = Pool(self.folder.pool, create=True).add_many(items)
            self._accepted([spec.sha256 for spec in stored], config.blind_win_limit)

    def _accepted(self, hashes: Sequence[str], blind_win_limit: float) -> None:
        """Keep this machine's verdicts, which no later step of the run asks for."""
        try:
            Verdicts().remember_accepted(hashes, "standard", blind_win_limit)
        except SpadeError as error:
            self._warn(str(error))

    def checkpoint(
        self, state: RunState, learner: Learner, config: RunConfig, *, force: bool = False
    ) -> None:
        """Write a checkpoint where one is due; a full disk is reported, and the run goes on."""
        if not force and state.step % config.checkpoint_every and state.step < config.steps:
            return
        try:
            self.checkpoints.save(state.step, state.to_state(), self.folder.offsets(), learner.save)
        except OSError as error:
            self._failing = True
            sound = self.checkpoints.newest_sound()
            lost = "the whole run" if sound is None else f"everything since step {sound}"
            self._warn(
                f"the checkpoint of step {state.step} can't be written "
                f"({error.strerror or error}); the run goes on, but a kill now loses {lost}: free "
                f"space on the disk"
            )
            return
        if self._failing:
            self._failing = False
            self._warn(f"the checkpoint of step {state.step} is written: nothing is at risk now")

    def _manifest(self, design: Design, report: ValidationReport) -> EnvSpec:
        card = read_card(design.source)
        return EnvSpec(
            id=report.id or f"spade/{design.sha256[:8]}-v0",
            sha256=design.sha256,
            kind=report.kind or design.kind,
            dialect=report.dialect or "contract",
            title=design.title or "Untitled",
            skill=card.get("skill") or design.skill,
            max_turns=card.get("max_turns") or 20,
            hint=design.hint,
            provenance=Provenance(
                designer=self._designer,
                corpus_document=design.document,
                parents=list(design.parents),
                run=self.folder.path.name,
                step=design.made,
                created=datetime.now(UTC).isoformat(timespec="seconds"),
            ),
            validation=ValidationSummary(
                profile="standard",
                verdict=report.verdict,
                findings=report.findings,
                runtime_version=__version__,
            ),
        )


def read_card(source: str) -> dict[str, Any]:
    """Return what an accepted source says of itself: title, skill, max_turns."""
    from spade_runtime.contract import read

    reading = read(source)
    return {"title": reading.title, "skill": reading.skill, "max_turns": reading.max_turns}
