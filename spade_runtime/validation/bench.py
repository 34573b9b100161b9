"""What the gates of one file share: the source, the children, and what was learned so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from spade_runtime.codes import CODES
from spade_runtime.errors import EnvFault, EnvTimeout
from spade_runtime.spec import BLIND_WIN_LIMIT, Dialect, Kind, Limits, Profile
from spade_runtime.validation.actions import boxed_form
from spade_runtime.validation.games import Play, Player, Start, Suspect, Table
from spade_runtime.validation.replies import Problem, ReplyChecker
from spade_runtime.validation.report import Findings, Identity
from spade_runtime.validation.seeds import SeedStream
from spade_runtime.validation.tooluse import Desk, ToolPlay, spoken

if TYPE_CHECKING:
    from spade_runtime.sandbox.channel import RawChild
    from spade_runtime.sandbox.pool import SandboxPool
    from spade_runtime.sandbox.wire import Inspection, LoadReply
    from spade_runtime.validation.judge import Judge

_TIGHT = 0.25
Room = Literal["main", "replay"]
"""Which pool a child comes from: they differ in hash seed and start time."""


@dataclass(frozen=True)
class Options:
    """What a validation was asked for.

    Attributes:
        profile: `lenient`, `standard` or `strict`.
        limits: limits of time, memory and size.
        blind_win_limit: the share of wins that a blind policy may not exceed (SPD701, SPD705).
        hint: a hint that is validated with the source.
        judge: asks a model about criteria, where one is configured.
    """

    profile: Profile = "standard"
    limits: Limits = field(default_factory=Limits)
    blind_win_limit: float = BLIND_WIN_LIMIT
    hint: str | None = None
    judge: Judge | None = None


@dataclass
class Bench:
    """One file on the validator's bench.

    Attributes:
        source: the text of the file.
        options: what was asked for.
        findings: what was found so far.
        stream: where seeds and choices come from.
        pools: the pool of each room.
        inspection: what the static gates read, once they have run.
        loaded: the reply to loading, once it was made.
        seeds: reset seeds of the gates, fewer for slow environments.
        starts: the reset of each seed in the main room.
        solutions: the reference solution of each seed, as far as there is one.
        replays: plays of the solutions in a child that never computed them.
        plays: everything else that was played in the main room.
        reset_cost: processor seconds of one reset.
        thrift: one in so many episodes is played, where a step costs much processor time.
        stop: no further gate may run.
    """

    source: str
    options: Options
    findings: Findings
    stream: SeedStream
    pools: dict[Room, SandboxPool]
    inspection: Inspection | None = None
    loaded: LoadReply | None = None
    seeds: list[int] = field(default_factory=list)
    starts: dict[int, Start] = field(default_factory=dict)
    solutions: dict[int, list[Any]] = field(default_factory=dict)
    replays: list[Play] | list[ToolPlay] = field(default_factory=list)
    plays: list[Play] = field(default_factory=list)
    tool_plays: list[ToolPlay] = field(default_factory=list)
    reset_cost: float = 0.0
    thrift: int = 1
    stop: bool = False
    _children: list[RawChild] = field(default_factory=list)
    _kept: dict[Room, RawChild] = field(default_factory=dict)

    # --- the source ----------------------------------------------------------------------------

    @property
    def kind(self) -> Kind:
        """`game` or `tool_use`; the contract gate has passed."""
        assert self.inspection is not None
        return cast(Kind, self.inspection.kind)

    @property
    def dialect(self) -> Dialect:
        """The form that the source is written in."""
        assert self.inspection is not None
        return cast(Dialect, self.inspection.dialect or "contract")

    @property
    def max_turns(self) -> int:
        """The class's own limit, as far as it is one."""
        assert self.inspection is not None
        return min(100, max(1, self.inspection.max_turns))

    @property
    def boxes(self) -> bool:
        r"""Whether the class takes `\boxed{action}` out of the text by itself."""
        return self.dialect != "contract" and self.kind == "game"

    def worded(self, player: Player) -> Player:
        """A player whose actions reach the class as an agent's would."""
        if not self.boxes:
            return player

        def act(observation: str, turn: int) -> str | None:
            action = player(observation, turn)
            return None if action is None else boxed_form(action)

        return act

    @property
    def identity(self) -> Identity:
        """What the report says of the source."""
        seen = self.inspection
        if seen is None:
            return Identity()
        kind = seen.kind if seen.kind in ("game", "tool_use") else None
        dialect = seen.dialect if seen.dialect in ("contract", "published", "gem") else None
        name = seen.class_name
        id_ = f"spade/{name.removesuffix('Env') or name}-v{seen.version}" if name else None
        return Identity(id_, cast("Kind | None", kind), cast("Dialect | None", dialect))

    # --- children ------------------------------------------------------------------------------

    def open(self, room: Room) -> RawChild:
        """A fresh child that has inspected the source and has not loaded it yet."""
        child = self.pools[room].open_raw(self.source, instances=256, limits=self.options.limits)
        self._children.append(child)
        return child

    def child(self, room: Room) -> RawChild:
        """The room's child whose history is the same in both rooms, opened when first asked for."""
        if room not in self._kept:
            self._kept[room] = self.fresh(room)
        return self._kept[room]

    def keep(self, room: Room, child: RawChild) -> None:
        """Make a child the one that `child` gives."""
        self._kept[room] = child

    def fresh(self, room: Room) -> RawChild:
        """A new child with the class loaded."""
        child = self.open(room)
        child.inspect()
        child.load()
        return child

    def culprit(self, suspects: Sequence[Suspect]) -> tuple[int, str | None] | None:
        """Play suspects one by one in a fresh child, until one of them ends it.

        The time limits are tight there: what hangs is known to hang.

        Returns:
            The seed, and the action or call, None where the fault is in the reset; None altogether
            where it does not come again.
        """
        limits = self.options.limits
        tight = limits.model_copy(
            update={
                "reset_seconds": limits.reset_seconds * _TIGHT,
                "step_seconds": limits.step_seconds * _TIGHT,
            }
        )
        child = self.pools["main"].open_raw(self.source, instances=1, limits=tight)
        self._children.append(child)
        child.inspect()
        child.load()
        for seed, sent in suspects:
            last: str | None = None
            try:
                child.reset([0], [seed])
                for one in sent:
                    if isinstance(one, str):
                        last = one
                        child.step([0], [one])
                    else:
                        last = spoken(one[:2])
                        child.tool([0], [one])
            except EnvFault:
                return seed, last
        return None

    def solve(self, room: Room, seeds: Sequence[int], *, fresh: bool = False) -> list[object]:
        """What `solution()` gives for some seeds, as far as it can be compared."""
        child = self.fresh(room) if fresh else self.child(room)
        slots = range(len(seeds))
        child.reset(slots, seeds)
        found: list[object] = []
        for reply in child.solution(slots):
            calls = getattr(reply, "calls", None)
            actions = getattr(reply, "actions", None)
            found.append(actions if calls is None else [list(turn) for turn in calls])
        return found

    def table(self, child: RawChild) -> Table:
        """Games in the slots of a child."""
        checker = ReplyChecker(self.options.limits, self.kind, self.dialect)
        return Table(child, checker, positive_wins=self.dialect == "published")

    def desk(self, child: RawChild) -> Desk:
        """Tool-use episodes in the slots of a child."""
        return Desk(child, ReplyChecker(self.options.limits, self.kind, self.dialect))

    @property
    def cpu_seconds(self) -> float:
        """Processor time that the file's children have used."""
        return sum(child.cpu_seconds for child in self._children)

    def charge(self) -> None:
        """Hold the file's gates to their processor time.

        Raises:
            EnvTimeout: they have used it up.
        """
        allowed = self.options.limits.file_seconds
        if self.cpu_seconds > allowed:
            raise EnvTimeout(
                f"the gates of this file used more than {allowed:g} s of processor time"
            )

    def close(self) -> None:
        """Kill every child; nothing of the source is called back."""
        for child in self._children:
            child.kill()

    # --- findings ------------------------------------------------------------------------------

    def found(
        self,
        code: str,
        message: str,
        *,
        gate: str | None = None,
        line: int | None = None,
        seed: int | None = None,
        action: str | None = None,
    ) -> None:
        """Record a finding under its code's own gate, or another."""
        home = gate or CODES[code].gate
        self.findings.add(code, message, home, line=line, seed=seed, action=action)

    def warned(
        self, code: str, message: str, *, seed: int | None = None, action: str | None = None
    ) -> None:
        """Record a warning about a text under the code whose matter it is, whatever the profile."""
        if not self.findings.has(code):
            home = "audit"
            self.findings.add(code, message, home, seed=seed, action=action, soft=True)

    def problem(
        self,
        problem: Problem,
        gate: str,
        *,
        seed: int | None = None,
        action: str | None = None,
    ) -> None:
        """Record what was wrong with a reply, at the gate in which it was seen."""
        self.findings.add(
            problem.code, problem.message, gate, line=problem.line, seed=seed, action=action
        )


def spread(items: Sequence[int], count: int) -> list[int]:
    """The first `count` items, repeated in turn where there are fewer.

    >>> spread([4, 5], 3)
    [4, 5, 4]
    """
    return [items[place % len(items)] for place in range(count)]
